package line_test

import (
	"testing"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// handOverCommands are two scripts, and what they call.
const handOverCommands = 2 + 16

// What a lock costs that passes from session to session does not depend on how many wait for it: two scripts, and
// 16 commands in them (R15). Now and then a script clears up, or a session that has waited for a while listens to the
// lock's channel: the cheapest of several hand-overs is without that.
func TestAHandOverCostsTheSameHoweverManySessionsWait(t *testing.T) {
	for name, mutex := range map[string]func(s *rlock.Session) *rlock.Mutex{
		"plain": func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, "x") },
		"fair":  func(s *rlock.Session) *rlock.Mutex { return fairlock.New(s, "x").Mutex },
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				c := locktest.Circle{
					Channel: "redisson_lock__channel:{x}", Want: handOverCommands,
					Lock: func(s *rlock.Session) locktest.LockFunc { return mutex(s).Lock },
				}
				few, many := c.Cost(t, s, 4), c.Cost(t, s, 64)
				if few != handOverCommands || many != handOverCommands {
					t.Errorf("with 4 sessions a hand-over costs %d commands, with 64 %d; want %d", few, many, handOverCommands)
				}
			})
		})
	}
}
