package locktest

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Stays watches a critical section for a while, in which it must not end.
func Stays(t *testing.T, section context.Context, d time.Duration) {
	t.Helper()
	select {
	case <-section.Done():
		t.Fatalf("the section's context ended: %v", context.Cause(section))
	case <-time.After(d):
	}
}

// A Locked is the outcome of a Lock in a goroutine.
type Locked struct {
	Ctx  context.Context
	Hold *rlock.Hold
	Err  error
	At   time.Time
}

// GoLock calls Lock in a goroutine of its own, and tells how it ended.
func GoLock(m Mutex, ctx context.Context, opts ...rlock.LockOption) <-chan Locked {
	c := make(chan Locked, 1)
	go func() {
		section, h, err := m.Lock(ctx, opts...)
		c <- Locked{section, h, err, time.Now()}
	}()
	return c
}

// Go calls fn in a goroutine of its own, and tells what it returned.
func Go(fn func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- fn() }()
	return c
}

// LockOnce takes the lock and gives it back.
func LockOnce(t *testing.T, m *rlock.Mutex) {
	t.Helper()
	_, h, err := m.Lock(Within(t, 20*time.Second))
	Must(t, err)
	Must(t, h.Unlock())
}

// A Waiter is a Lock that runs in a goroutine of its own.
type Waiter struct {
	Ctx  context.Context
	Hold *rlock.Hold
	Err  error
	Done chan struct{}
}

// BeginLock calls Lock in a goroutine of its own.
func BeginLock(ctx context.Context, m *rlock.Mutex, opts ...rlock.LockOption) *Waiter {
	w := &Waiter{Done: make(chan struct{})}
	go func() {
		defer close(w.Done)
		w.Ctx, w.Hold, w.Err = m.Lock(ctx, opts...)
	}()
	return w
}

// Waits fails the test if the Lock has returned.
func (w *Waiter) Waits(t testing.TB) {
	t.Helper()
	select {
	case <-w.Done:
		t.Fatalf("Lock returned: %v", w.Err)
	default:
	}
}

// Granted waits for the Lock to succeed and returns how long that took.
func (w *Waiter) Granted(t testing.TB, limit time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case <-w.Done:
	case <-time.After(limit):
		t.Fatalf("the waiter does not have the lock after %v", limit)
	}
	Must(t, w.Err)
	return time.Since(begin)
}

// QueueUp has one more goroutine wait in the session's queue.
func QueueUp(t *testing.T, ses *rlock.Session, name string, ctx context.Context) <-chan Locked {
	t.Helper()
	before := WaitersOf(ses, name)
	c := GoLock(rlock.New(ses, name), ctx)
	redistest.Eventually(t, 5*time.Second, "one more in the queue", func() bool { return WaitersOf(ses, name) > before })
	return c
}

// Second is the error of a call that returns something besides.
func Second[T any](_ T, err error) error { return err }
