package fairlock_test

import (
	"testing"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// What stands under the name loses its TTL, so that it is no lock any more: the waiters are told, those of a session that
// is not the first of the line too. They waited for ever, for it never ends.
func TestWaitersAreToldOfALockWithoutAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		must(t, s.Do(t, "HSET", "x", "somebody", "1").Error())
		must(t, s.Do(t, "PEXPIRE", "x", "3600000").Error())
		a, b := fairlock.New(dial(t, s, short(s)), "x"), fairlock.New(dial(t, s, short(s)), "x")
		first := goQueued(t, ctx, a, 1)
		second := goQueued(t, ctx, b, 2)
		must(t, s.Do(t, "PERSIST", "x").Error())
		for what, next := range map[string]<-chan locked{"first": first, "second": second} {
			if l := locktest.Get(t, next, patience, "Lock returns"); !hasText(l.err, "no lock") {
				t.Errorf("the %s waiter: %v", what, l.err)
			}
		}
		s.FlushAll(t)
	})
}
