package semaphore_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// A permit comes free while the caller in front is asking, and so waits for the answer to that. It can be
// trusted no longer before the answer comes: no holder has lost it, and Redis gets it back. It waits only if half of
// its trust is left: the lease is as long as it is for a machine that takes a second from one step to the next.
func TestAPermitThatWaitedTooLongForTheFrontIsNotLost(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lost := make(chan locktrace.Lost, 10)
		trace, waiting := locktest.Waiting()
		trace.Lost = func(e locktrace.Lost) { lost <- e }
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 4500 * time.Millisecond, PollFloor: 100 * time.Millisecond, Trace: trace})
		m := semaphore.New(ses, "x", 1)
		_, first, err := m.Acquire(within(t, time.Minute), 1)
		must(t, err)
		semaphore.SliceFor(ses, "x", time.Hour)
		next := acquire(within(t, time.Minute), m, 1)
		locktest.Get(t, waiting, 10*time.Second, "the waiter")
		seen, release := p.HoldReply(locktest.Runs(src["acquire"]))
		locktest.Get(t, seen, 10*time.Second, "the question of the front")
		must(t, first.Release())
		if n := p.Count("EVALSHA"); n == 0 || taken(t, s, "x") != 1 {
			t.Fatal("the permit went back to Redis at once")
		}
		// The waiter may ask again before the release has arrived: the permit has expired in Redis by then.
		redistest.Eventually(t, 20*time.Second, "the permit is back", func() bool { return taken(t, s, "x") == 0 || len(next) > 0 })
		release()
		g := locktest.Get(t, next, 20*time.Second, "the waiter")
		must(t, g.err)
		must(t, g.p.Release())
		select {
		case e := <-lost:
			t.Errorf("lost: %+v", e)
		default:
		}
	})
}
