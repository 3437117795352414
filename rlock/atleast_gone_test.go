package rlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A Lock whose caller has gone when it was granted leaves nothing standing, and ForceUnlock ends what stands.
func TestAtLeastIsForLocksThatWereTaken(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex) {
		_, h, err := elsewhere.Lock(ctx)
		must(t, err)
		waits, cancel := context.WithCancel(ctx)
		waiter := locktest.Go(func() error { _, _, err := m.Lock(waits, rlock.AtLeast(time.Hour)); return err })
		redistest.Eventually(t, 5*time.Second, "a caller to wait", waitsOf(ses, m))
		cancel()
		locktest.Is(t, "Lock", locktest.Get(t, waiter, 5*time.Second, "it"), rlock.ErrNotAcquired, context.Canceled)
		must(t, h.Unlock())
		redistest.Eventually(t, 5*time.Second, "the lock to be free", func() bool {
			n, err := s.Do(t, "EXISTS", "x").AsInt64()
			return err == nil && n == 0
		})
		_, h, err = m.Lock(ctx, rlock.AtLeast(time.Hour))
		must(t, err)
		must(t, h.Unlock())
		ended, err := m.(interface {
			ForceUnlock(context.Context) (bool, error)
		}).ForceUnlock(ctx)
		if err != nil || !ended {
			t.Fatalf("ForceUnlock: %v, %v", ended, err)
		}
		_, h, err = elsewhere.TryLock(ctx)
		must(t, err)
		must(t, h.Unlock())
	})
}

// A silentContext ends when it is told, and whoever waits for that is not woken.
type silentContext struct {
	context.Context
	over atomic.Bool
}

func (c *silentContext) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return c.Context.Err()
}

// A caller whose context has ended when it is let in by a message leaves nothing standing.
func TestAtLeastOfACallerThatIsLetInTooLate(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex) {
		_, h, err := elsewhere.Lock(ctx)
		must(t, err)
		late := &silentContext{Context: ctx}
		waiter := locktest.Go(func() error { _, _, err := m.Lock(late, rlock.AtLeast(time.Hour)); return err })
		redistest.Eventually(t, 5*time.Second, "a caller to wait", waitsOf(ses, m))
		redistest.Eventually(t, 5*time.Second, "the waiter to stand in the line", func() bool {
			n, err := s.Do(t, "EXISTS", "relock_line1:{x}").AsInt64()
			return err == nil && n == 1
		})
		late.over.Store(true)
		must(t, h.Unlock())
		locktest.Is(t, "Lock", locktest.Get(t, waiter, 5*time.Second, "it"), rlock.ErrNotAcquired, context.Canceled)
		redistest.Eventually(t, 5*time.Second, "the lock to be free", func() bool {
			n, err := s.Do(t, "EXISTS", "x").AsInt64()
			return err == nil && n == 0
		})
	})
}
