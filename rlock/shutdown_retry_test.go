package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// A TryLock with Retry that sleeps in no section ends when Shutdown begins, however long its Backoff is.
func TestShutdownEndsATryLockThatSleeps(t *testing.T) {
	lockers := map[string]func(*testing.T, *redistest.Server, *rlock.Session, string) func(context.Context, ...rlock.LockOption) error{
		"mutex": func(_ *testing.T, _ *redistest.Server, ses *rlock.Session, name string) func(context.Context, ...rlock.LockOption) error {
			return func(ctx context.Context, opts ...rlock.LockOption) error {
				_, _, err := rlock.New(ses, name).Lock(ctx, opts...)
				return err
			}
		},
		"fair": func(_ *testing.T, _ *redistest.Server, ses *rlock.Session, name string) func(context.Context, ...rlock.LockOption) error {
			return func(ctx context.Context, opts ...rlock.LockOption) error {
				_, _, err := fairlock.New(ses, name).Lock(ctx, opts...)
				return err
			}
		},
		"counter": func(_ *testing.T, _ *redistest.Server, ses *rlock.Session, name string) func(context.Context, ...rlock.LockOption) error {
			return func(ctx context.Context, opts ...rlock.LockOption) error {
				return semaphore.NewCounter(ses, name).Acquire(ctx, 1, opts...)
			}
		},
	}
	for kind, locker := range lockers {
		t.Run(kind, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				name, ctx := redistest.Name(t), within(t, 30*time.Second)
				other, ses := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
				must(t, semaphore.NewCounter(other, name).Release(ctx, 1))
				if kind != "counter" {
					must(t, s.Do(t, "DEL", name).Error())
				}
				must(t, locker(t, s, other, name)(ctx))
				waiting := make(chan struct{})
				lock := locker(t, s, ses, name)
				waiter := faultGo(func() error { return lock(ctx) })
				sleeper := faultGo(func() error {
					return lock(ctx, rlock.Retry(func(int) time.Duration {
						close(waiting)
						return time.Hour
					}))
				})
				locktest.Get(t, waiting, 10*time.Second, "the sleep")
				done := faultGo(func() error { return ses.Shutdown(ctx) })
				must(t, locktest.Get(t, done, 10*time.Second, "Shutdown"))
				locktest.Is(t, "the caller that waits", locktest.Get(t, waiter, 10*time.Second, "it"), rlock.ErrClosed)
				locktest.Is(t, "the caller that sleeps", locktest.Get(t, sleeper, 10*time.Second, "it"), rlock.ErrClosed)
			})
		})
	}
}
