package semaphore_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Waiters counts the callers of all sessions, and none that has left.
func TestWaitersCountsTheCallersOfAllSessions(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		own, leave := context.WithCancel(ctx)
		defer leave()
		m := semaphore.New(dial(t, s, slow()), "x", 2)
		_, held, err := m.Acquire(ctx, 2)
		must(t, err)
		// What a session says of its callers comes with its looks.
		cfg := rlock.Config{PollFloor: 100 * time.Millisecond}
		a, b := semaphore.New(dial(t, s, cfg), "x", 2), semaphore.New(dial(t, s, cfg), "x", 2)
		waiting := []<-chan got{acquire(own, a, 1), acquire(own, a, 2), acquire(own, a, 1), acquire(own, b, 1)}
		wait := func(want int) {
			t.Helper()
			redistest.Eventually(t, 10*time.Second, "the number of waiters", func() bool {
				n, err := m.Waiters(ctx)
				must(t, err)
				return n == want
			})
		}
		wait(4)
		leave()
		for _, w := range waiting {
			is(t, "a waiter", (<-w).err, rlock.ErrNotAcquired)
		}
		wait(0)
		must(t, held.Release())

		c := semaphore.NewCounter(dial(t, s, slow()), "c")
		others := semaphore.NewCounter(dial(t, s, slow()), "c")
		done := start(func() error { return others.Acquire(ctx, 2) })
		redistest.Eventually(t, 10*time.Second, "one who waits for the counter", func() bool {
			n, err := c.Waiters(ctx)
			must(t, err)
			return n == 1
		})
		must(t, c.Release(ctx, 2))
		must(t, <-done)
		n, err := c.Waiters(ctx)
		must(t, err)
		if n != 0 {
			t.Errorf("%d callers wait, want none", n)
		}
		_, err = (&semaphore.Semaphore{}).Waiters(ctx)
		is(t, "of a zero value", err, rlock.ErrArgument)
	})
}
