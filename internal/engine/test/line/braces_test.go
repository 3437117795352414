package line_test

import (
	"errors"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// x and {x} are two locks: a waiter of one does not stand in the way of the other, nor does its entry go when the other
// is released.
func TestBracesMakeAnotherLock(t *testing.T) {
	for _, names := range [][2]string{{"x", "{x}"}, {"{x}", "x"}, {"{x}:", "{x}"}, {"{x}", "{x}:"}, {"a}b", "{a}b}"}} {
		t.Run(names[0]+" beside "+names[1], func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				cfg := rlock.Config{Lease: time.Hour, QueueLease: time.Hour, PollFloor: time.Hour}
				a, b, c := dial(t, s, cfg), dial(t, s, cfg), dial(t, s, cfg)
				ctx := within(t, 20*time.Second)
				_, first, err := rlock.New(a, names[0]).Lock(ctx)
				must(t, err)
				waiter := locktest.BeginLock(ctx, rlock.New(b, names[0]))
				redistest.Eventually(t, 5*time.Second, "the waiter to stand in the line", func() bool {
					n, err := rlock.New(a, names[0]).Waiters(ctx)
					return err == nil && n == 1
				})
				n, err := rlock.New(c, names[1]).Waiters(ctx)
				must(t, err)
				if n != 0 {
					t.Errorf("%d callers wait for the other lock", n)
				}
				for range 2 {
					other := locktest.BeginLock(ctx, rlock.New(c, names[1]))
					other.Granted(t, 5*time.Second)
					must(t, other.Hold.Unlock())
				}
				waiter.Waits(t)
				must(t, first.Unlock())
				waiter.Granted(t, 5*time.Second)
				must(t, waiter.Hold.Unlock())
			})
		})
	}
}

// The ids of their holds are two sets.
func TestBracesMakeOtherHolds(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		a := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		kinds := map[string]func(name string) locktest.Mutex{
			"plain": func(name string) locktest.Mutex { return rlock.New(a, name) },
			"fair":  func(name string) locktest.Mutex { return fairlock.New(a, name) },
			"write": func(name string) locktest.Mutex { return rwlock.New(a, name) },
		}
		for kind, of := range kinds {
			me := rlock.WithOwner(ctx, "me")
			_, one, err := of(kind).Lock(me)
			must(t, err)
			_, two, err := of("{" + kind + "}").Lock(me)
			must(t, err)
			must(t, one.Unlock())
			if err := two.Unlock(); err != nil {
				t.Errorf("%s: Unlock: %v", kind, err)
			}
			if _, h, err := of("{" + kind + "}").TryLock(ctx); errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("%s: the lock is still held", kind)
			} else {
				must(t, err)
				must(t, h.Unlock())
			}
		}
	})
}
