package multilock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
)

// What a lock itself refuses is the multi-lock's error, and the locks before it are free again.
func TestRefusedByALock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses := dial(t, s, slow())
		ok := rlock.New(ses, "a")
		_, h, err := multilock.New(ok).Lock(ctx)
		must(t, err)
		is(t, "Extend without Lease", h.Extend(ctx, time.Second), rlock.ErrArgument)
		must(t, h.Unlock())
		must(t, s.Do(t, "SET", "b", "text").Error())
		if _, _, err = multilock.New(ok, rlock.New(ses, "b")).Lock(ctx); err == nil || errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("WRONGTYPE: %v", err)
		}
		free(t, ctx, ok)
	})
}

// Retry is a series of rounds, which ends when its Backoff gives up, with Wait, when a session
// closes, or with another error than a refusal.
func TestRetry(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		a, b := rlock.New(ses, "a"), rlock.New(ses, "b")
		m := multilock.New(a, b)
		_, h, err := rlock.New(other, "b").Lock(ctx)
		must(t, err)
		for what, lock := range map[string]func(context.Context, ...rlock.LockOption) (context.Context, *multilock.Hold, error){"Lock": m.Lock, "TryLock": m.TryLock} {
			var rounds []int
			times := func(n int) time.Duration {
				if rounds = append(rounds, n); n == 3 {
					return -1
				}
				return time.Millisecond
			}
			_, _, err := lock(ctx, rlock.Retry(times))
			if is(t, what, err, rlock.ErrNotAcquired); !slices.Equal(rounds, []int{1, 2, 3}) {
				t.Errorf("%s: slept %v", what, rounds)
			}
			_, _, err = lock(ctx, rlock.Retry(rlock.Linear(time.Hour)), rlock.Wait(time.Minute))
			is(t, what+" with Wait", err, rlock.ErrNotAcquired)
			free(t, ctx, a)
		}
		// The lock comes free between two rounds.
		section, got, err := m.Lock(ctx, rlock.Lease(time.Hour), rlock.Retry(func(int) time.Duration {
			must(t, h.Unlock())
			return time.Millisecond
		}))
		must(t, err)
		must(t, got.Extend(section, time.Hour)) // the lease is fixed
		must(t, got.Unlock())
		must(t, s.Do(t, "SET", "b", "no lock").Error())
		_, _, err = m.Lock(ctx, rlock.Retry(rlock.Linear(time.Hour)))
		if err == nil || errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("Lock with a key of another type: %v", err)
		}
		must(t, s.Do(t, "DEL", "b").Error())
		_, h, err = rlock.New(other, "b").Lock(ctx)
		must(t, err)
		asleep := make(chan int, 1)
		c := start(ctx, m, rlock.Retry(func(n int) time.Duration { asleep <- n; return time.Hour }))
		locktest.Get(t, asleep, 20*time.Second, "the caller to sleep")
		must(t, ses.Close())
		is(t, "Close", locktest.Get(t, c, 20*time.Second, "the caller to leave").err, rlock.ErrClosed)
		must(t, h.Unlock())
	})
}
