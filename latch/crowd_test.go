package latch_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/rlock"
)

// All callers of a session that wait for a latch are let in by the answer to one of them. If each of them asked, one after
// the other, the last one would wait for as many round trips.
func TestOneAnswerOpensTheLatchForASession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const callers = 500
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace})
		l := latch.New(ses, "x")
		sets(t, ctx, l, 1, true)
		all := make(chan error, callers)
		for range callers {
			go func() { all <- l.Await(ctx) }()
		}
		for range callers {
			locktest.Get(t, waiting, patience, "a caller to wait")
		}
		redistest.Eventually(t, patience, "the session to listen", func() bool { return len(s.Channels(t)) == 2 })
		locktest.Stays(t, ctx, 2*time.Millisecond) // in a bubble they would come when it is asked again
		must(t, l.CountDown(ctx))
		for range callers {
			must(t, locktest.Get(t, all, patience, "a caller to be let in"))
		}
		if n := locktest.Sent(p, locktest.Runs(src["await"])); n > 10 {
			t.Errorf("%d callers have asked %d times", callers, n)
		}
	})
}

// The answer that a latch is open is not good for who comes when the question has been sent: the latch may have been set
// again meanwhile.
func TestAnAnswerIsNotForWhoCameLater(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace})
		l := latch.New(ses, "x")
		seen, release := p.HoldReply(locktest.Runs(src["await"]))
		first := await(ctx, l)
		locktest.Get(t, seen, patience, "the first answer")
		sets(t, ctx, latch.New(dial(t, s, slow()), "x"), 1, true)
		later := await(ctx, l)
		locktest.Get(t, waiting, patience, "the later one to wait")
		release()
		opens(t, first)
		redistest.Eventually(t, patience, "the later one to listen", func() bool { return len(s.Channels(t)) == 3 })
		waits(t, later)
		must(t, latch.New(dial(t, s, slow()), "x").CountDown(ctx))
		opens(t, later)
	})
}
