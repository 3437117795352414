package trace_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A ReleaseEnd that blocks costs its own Unlock only: Redis has confirmed the release, so the next caller of the session has
// the lock, and a caller of the same name takes it once more.
func TestReleaseEndThatBlocksHoldsUpItsUnlockOnly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var armed atomic.Bool
		hit, free := make(chan struct{}), make(chan struct{})
		ses := locktest.Dial(t, s, rlock.Config{HandOverLimit: -1, Trace: &rlock.Trace{
			ReleaseEnd: func(context.Context, locktrace.ReleaseEnd) {
				if armed.CompareAndSwap(true, false) {
					hit <- struct{}{}
					<-free
				}
			},
		}})
		ctx := locktest.Within(t, 30*time.Second)
		blocks := func(h *rlock.Hold) (unlocked <-chan error) {
			armed.Store(true)
			unlocked = locktest.Go(h.Unlock)
			locktest.Get(t, hit, 10*time.Second, "ReleaseEnd")
			return unlocked
		}

		_, h, err := rlock.New(ses, "x").Lock(ctx)
		must(t, err)
		next := locktest.QueueUp(t, ses, "x", ctx)
		last := blocks(h)
		got := locktest.Get(t, next, 10*time.Second, "the lock behind ReleaseEnd")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		free <- struct{}{}
		must(t, locktest.Get(t, last, 10*time.Second, "Unlock"))

		named := rlock.WithOwner(ctx, "me")
		_, outer, err := rlock.New(ses, "y").Lock(named)
		must(t, err)
		_, inner, err := rlock.New(ses, "y").Lock(named)
		must(t, err)
		last = blocks(inner)
		again := locktest.GoLock(rlock.New(ses, "y"), named)
		got = locktest.Get(t, again, 10*time.Second, "one more hold behind ReleaseEnd")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		must(t, outer.Unlock())
		free <- struct{}{}
		must(t, locktest.Get(t, last, 10*time.Second, "the inner Unlock"))
	})
}

// A ReleaseStart that blocks has the release timeout, as an answer of Redis has: then the release is sent without it, and the
// next caller of the session has the lock. That holds for each Unlock.
func TestReleaseStartThatBlocksHasTheReleaseTimeout(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var armed atomic.Bool
		hit, free := make(chan struct{}), make(chan struct{})
		ended := make(chan error, 4)
		ses := locktest.Dial(t, s, rlock.Config{ReleaseTimeout: 500 * time.Millisecond, Trace: &rlock.Trace{
			ReleaseStart: func(ctx context.Context, _ locktrace.ReleaseStart) context.Context {
				if armed.CompareAndSwap(true, false) {
					hit <- struct{}{}
					<-free
				}
				return ctx
			},
			ReleaseEnd: func(_ context.Context, e locktrace.ReleaseEnd) { ended <- e.Err },
		}})
		private := locktest.Within(t, time.Minute)
		named, m := rlock.WithOwner(private, "me"), rlock.New(ses, "x")
		async := func(h *rlock.Hold) error { h.UnlockAsync(); return nil }
		for what, c := range map[string]struct {
			ctx    context.Context
			unlock func(*rlock.Hold) error
			holds  int
			want   error
		}{
			"Unlock":            {private, (*rlock.Hold).Unlock, 1, rlock.ErrUnavailable},
			"UnlockAsync":       {private, async, 1, nil},
			"inner Unlock":      {named, (*rlock.Hold).Unlock, 2, rlock.ErrUnavailable},
			"inner UnlockAsync": {named, async, 2, nil},
		} {
			var holds []*rlock.Hold
			for range c.holds {
				_, h, err := m.Lock(c.ctx)
				must(t, err)
				holds = append(holds, h)
			}
			armed.Store(true)
			unlocked := locktest.Go(func() error { return c.unlock(holds[len(holds)-1]) })
			locktest.Get(t, hit, 10*time.Second, what+": ReleaseStart")
			got := locktest.Get(t, locktest.GoLock(m, c.ctx), 20*time.Second, what+": the lock behind ReleaseStart")
			must(t, got.Err)
			free <- struct{}{}
			if err := locktest.Get(t, unlocked, 10*time.Second, what); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
			locktest.Is(t, what+": ReleaseEnd", locktest.Get(t, ended, 10*time.Second, "ReleaseEnd"), rlock.ErrUnavailable)
			must(t, got.Hold.Unlock())
			must(t, locktest.Get(t, ended, 10*time.Second, "ReleaseEnd"))
			if c.holds > 1 {
				must(t, holds[0].Unlock())
				must(t, locktest.Get(t, ended, 10*time.Second, "ReleaseEnd"))
			}
			redistest.Eventually(t, 10*time.Second, what+": the lock to be free", func() bool { return locktest.Free(t, s, "x") })
		}
	})
}
