package close_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// waitsFor waits for a lock of a session.
type waitsFor func(ses *rlock.Session, name string, ctx context.Context, opts ...rlock.LockOption) error

// A TryLock with Retry that sleeps in no section ends when Shutdown begins, however long its Backoff
// is, also behind callers that it does not want to overtake.
func TestShutdownEndsATryLockThatSleeps(t *testing.T) {
	t.Parallel()
	for kind, lock := range map[string]waitsFor{
		"mutex": func(ses *rlock.Session, name string, ctx context.Context, opts ...rlock.LockOption) error {
			_, _, err := rlock.New(ses, name).Lock(ctx, opts...)
			return err
		},
		"fair": func(ses *rlock.Session, name string, ctx context.Context, opts ...rlock.LockOption) error {
			_, _, err := fairlock.New(ses, name).Lock(ctx, opts...)
			return err
		},
		"counter": func(ses *rlock.Session, name string, ctx context.Context, opts ...rlock.LockOption) error {
			return semaphore.NewCounter(ses, name).Acquire(ctx, 1, opts...) // of none
		},
	} {
		t.Run(kind, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) { shutdownAsleep(t, s, kind, lock) })
		})
	}
}

func shutdownAsleep(t *testing.T, s *redistest.Server, kind string, lock waitsFor) {
	waits, sleeps := make(chan struct{}, 1), make(chan struct{})
	trace := &rlock.Trace{Waiting: func(context.Context, locktrace.Waiting) { waits <- struct{}{} }}
	name, ctx, ses := redistest.Name(t), within(t, 30*time.Second), dial(t, s, rlock.Config{Trace: trace})
	if kind != "counter" {
		must(t, lock(dial(t, s, rlock.Config{}), name, ctx))
	}
	waiter := locktest.Go(func() error { return lock(ses, name, ctx) })
	locktest.Get(t, waits, 10*time.Second, "the caller that waits")
	sleeper := locktest.Go(func() error {
		return lock(ses, name, ctx, rlock.Retry(func(int) time.Duration {
			close(sleeps)
			return time.Hour
		}))
	})
	locktest.Get(t, sleeps, 10*time.Second, "the caller that sleeps")
	done := locktest.Go(func() error { return ses.Shutdown(ctx) })
	must(t, locktest.Get(t, done, 10*time.Second, "Shutdown"))
	locktest.Is(t, "the caller that waits", locktest.Get(t, waiter, 10*time.Second, "it"), rlock.ErrClosed)
	locktest.Is(t, "the caller that sleeps", locktest.Get(t, sleeper, 10*time.Second, "it"), rlock.ErrClosed)
}
