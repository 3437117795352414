package fairlock_test

import (
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/inbox"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session is slow to hear that its caller stands in the line, and meanwhile the caller is given the lock, by a message
// that the session misses; it knows that it may have missed one. It asks at once when it has that answer: it asked with
// its next heartbeat, when the grant could be over, and its place lost with it.
func TestAGrantThatWasMissedBehindASlowAnswerIsAskedFor(t *testing.T) {
	for _, slow := range []string{"acquire", "look"} {
		t.Run(slow, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				other := fairlock.New(dial(t, s, rlock.Config{}), "x")
				ses, p := dialProxy(t, s, rlock.Config{QueueLease: 15 * time.Second}) // so a heartbeat comes after the end of a grant
				m := fairlock.New(ses, "x")
				first, y := lock(t, ctx, other), lock(t, ctx, fairlock.New(other.Session(), "y"))
				named := goQueued(t, rlock.WithOwner(ctx, "n"), fairlock.New(ses, "y"), 1)
				z := lock(t, ctx, rlock.New(ses, "z"))
				seen, release := p.HoldReply(runs(slow))
				defer release()
				next := goLock(ctx, m)
				locktest.Get(t, seen, patience, slow)
				queued(t, other, 1)
				p.DropMessages(true)
				unlock(t, first)
				p.DropMessages(false)
				// The message that a named owner was forced out puts the session in doubt.
				for _, n := range []inbox.Note{{Kind: inbox.Lost, Owner: "n", Key: "y"}, {Kind: inbox.Lost, Owner: z.hold.Owner(), Key: "z"}} {
					must(t, s.Do(t, "PUBLISH", inbox.Prefix+ses.ID(), n.String()).Error())
				}
				locktest.Get(t, z.ctx.Done(), patience, "the second message")
				release()
				unlock(t, granted(t, next, time.Second+s.Slack(), "the next"))
				unlock(t, y)
				unlock(t, granted(t, named, patience, "the named owner"))
			})
		})
	}
}
