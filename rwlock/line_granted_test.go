package rwlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// A writer that was given the lock by another's release has all that others have: it nests on both sides, keeps the lock
// when an inner hold ends, is confirmed for a whole lease, and may be downgraded, in either order of its unlocks.
func TestAWriterThatWasGivenTheLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, downgrade := range []bool{false, true} {
			for _, nestsFirst := range []bool{false, true} {
				ctx, name := within(t, 30*time.Second), redistest.Name(t)
				grants := make(chan locktrace.Grant, 10)
				cfg := far
				cfg.Trace = &rlock.Trace{AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) { grants <- e.Grant }}
				ses, other := dial(t, s, cfg), rwlock.New(dial(t, s, far), name)
				_, h := hold(t, ctx, other.Lock)
				in := stand(t, ctx, s, []*rlock.Session{ses}, name)
				must(t, h.Unlock())
				got := locktest.Get(t, in[0], 5*time.Second, "the writer")
				must(t, got.err)
				// (In real time it may have begun to listen just now, and have been called instead.)
				if g := locktest.Get(t, grants, time.Second, "the hook"); g != locktrace.GrantLine && s.IsMini() {
					t.Errorf("the lock was had by %v, want by the line", g)
				}
				m := rwlock.New(ses, name)
				redistest.Eventually(t, 5*time.Second, "it to be confirmed", func() bool { return pttl(t, s, name) > 10*time.Second })
				var inner *rlock.Hold
				if nestsFirst {
					_, inner = hold(t, got.ctx, m.Lock)
				}
				_, read := hold(t, got.ctx, m.RLock)
				if nestsFirst {
					must(t, inner.Unlock())
				}
				refused(t, ctx, other.TryRLock, "a reader beside a writer")
				if downgrade {
					must(t, got.hold.Unlock())
					if f := field(t, s, name, got.hold.Owner()+":write"); f != "" {
						t.Errorf("downgraded, it has %s write holds", f)
					}
					_, r := hold(t, ctx, other.TryRLock)
					must(t, r.Unlock())
					refused(t, ctx, other.TryLock, "a writer beside a reader")
					must(t, read.Unlock())
				} else {
					must(t, read.Unlock())
					refused(t, ctx, other.TryRLock, "a reader beside a writer")
					must(t, got.hold.Unlock())
				}
				_, r := hold(t, ctx, other.TryLock)
				must(t, r.Unlock())
				nothingLeft(t, s)
			}
		}
	})
}

// A writer that was given the lock while its caller gave up gives it back: the next one has it at once.
func TestAWriterThatGivesUpPassesOnWhatItIsGiven(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for range 20 {
			ctx, name := within(t, 30*time.Second), redistest.Name(t)
			own, cancel := context.WithCancel(ctx)
			_, h := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
			first := stand(t, own, s, []*rlock.Session{dial(t, s, far)}, name)[0]
			second := goLock(ctx, rwlock.New(dial(t, s, far), name).Lock)
			redistest.Eventually(t, 10*time.Second, "the second", func() bool { return writersWaiting(t, s, name) == 2 })
			freed := make(chan error, 1)
			go func() { freed <- h.Unlock() }()
			cancel()
			must(t, locktest.Get(t, freed, 5*time.Second, "Unlock"))
			if got := locktest.Get(t, first, 5*time.Second, "the first"); got.err == nil {
				must(t, got.hold.Unlock())
			}
			got := locktest.Get(t, second, 5*time.Second, "the second")
			must(t, got.err)
			must(t, got.hold.Unlock())
			nothingLeft(t, s)
		}
	})
}
