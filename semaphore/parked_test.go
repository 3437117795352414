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

// A permit comes free while the caller in front is asking, and waits for the answer; and another session's release
// gives that caller a permit meanwhile. It takes that one, and the other goes back: nobody else of the session waits.
func TestAPermitThatWaitsForTheFrontGoesBackIfTheFrontIsGivenAnother(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		told := make(chan struct{}, 10)
		cfg := slow()
		cfg.Trace = &rlock.Trace{Line: func(locktrace.Line) { told <- struct{}{} }}
		ses, client := locktest.DialGated(t, s, cfg)
		m := semaphore.New(ses, "x", 2)
		_, ours, err := m.Acquire(ctx, 1)
		must(t, err)
		_, theirs, err := semaphore.New(dial(t, s, slow()), "x", 2).Acquire(ctx, 1)
		must(t, err)
		seen, answer := client.HoldAnswer(locktest.Runs(src["acquire"]))
		next := acquire(ctx, m, 1)
		locktest.Get(t, seen, 10*time.Second, "the attempt of the front has run")
		semaphore.SliceFor(ses, "x", time.Hour)
		must(t, theirs.Release())
		locktest.Get(t, told, 10*time.Second, "what was given to the front")
		must(t, ours.Release())
		if n := taken(t, s, "x"); n != 2 {
			t.Fatalf("%d permits are out, want both: one waits for the answer", n)
		}
		answer()
		g := locktest.Get(t, next, 10*time.Second, "the front")
		must(t, g.err)
		redistest.Eventually(t, 10*time.Second, "the other permit to be back", func() bool { return taken(t, s, "x") == 1 })
		must(t, g.p.Release())
	})
}
