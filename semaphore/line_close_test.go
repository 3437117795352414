package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// A session closes, or its caller leaves, in the moment in which a release gives its caller the permit. Whichever comes
// first: the caller has it or not, it is not lost, and nothing is left in the line.
func TestCloseAndCancelRaceAGrantOfPermits(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		giver := semaphore.New(dial(t, s, slow()), "x", 1)
		got := 0
		for i := range 60 {
			_, held, err := giver.Acquire(ctx, 1)
			must(t, err)
			told := make(chan struct{}, 10)
			cfg := slow()
			cfg.Trace = &rlock.Trace{Line: func(locktrace.Line) { told <- struct{}{} }}
			ses := dial(t, s, cfg)
			own, cancel := context.WithCancel(ctx)
			waiter := acquire(own, semaphore.New(ses, "x", 1), 1)
			awaitInLine(t, s, "x", 1)
			done := start(held.Release)
			if i%4 > 1 { // the message is there
				locktest.Get(t, told, 10*time.Second, "the grant")
			}
			if i%2 == 0 {
				cancel()
			} else {
				must(t, ses.Close())
			}
			must(t, locktest.Get(t, done, 10*time.Second, "Release"))
			switch g := locktest.Get(t, waiter, 10*time.Second, "the waiter"); {
			case g.err == nil:
				got++
				if err := g.p.Release(); err != nil && !errors.Is(err, rlock.ErrLost) && !errors.Is(err, rlock.ErrClosed) {
					t.Fatal(err)
				}
			case !errors.Is(g.err, rlock.ErrNotAcquired) && !errors.Is(g.err, rlock.ErrClosed):
				t.Fatal(g.err)
			}
			redistest.Eventually(t, 10*time.Second, "the permit to be free, and nobody in the line", func() bool {
				free, err := s.Do(t, "GET", "x").ToString()
				must(t, err)
				return free == "1" && taken(t, s, "x") == 0 && len(inLine(t, s, "x")) == 0
			})
			cancel()
			must(t, ses.Close())
		}
		if got == 0 || got == 60 {
			t.Errorf("the waiter had the permit %d times of 60: it was never a race", got)
		}
	})
}
