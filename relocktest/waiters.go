package relocktest

import (
	"context"
	"testing"
	"time"

	"relock/locktrace"
	"relock/rlock"
)

// watched returns a Trace that counts the callers that wait, and calls the hooks of t too.
// The hooks of t come first, so that a test whose AwaitWaiters has returned finds what they did.
func (r *Redis) watched(t *rlock.Trace) *rlock.Trace {
	var w rlock.Trace
	if t != nil {
		w = *t
	}
	waiting, end := w.Waiting, w.AcquireEnd
	w.Waiting = func(ctx context.Context, e locktrace.Waiting) {
		defer r.waits(e.Name, 1) // deferred: a hook may panic, and the session goes on
		if waiting != nil {
			waiting(ctx, e)
		}
	}
	w.AcquireEnd = func(ctx context.Context, e locktrace.AcquireEnd) {
		if e.Waited {
			defer r.waits(e.Name, -1)
		}
		if end != nil {
			end(ctx, e)
		}
	}
	return &w
}

// waits changes the number of callers that wait for a lock.
func (r *Redis) waits(name string, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters == nil {
		r.waiters = map[string]int{}
	}
	if r.waiters[name] += by; r.waiters[name] == 0 {
		delete(r.waiters, name)
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Waiters returns how many callers wait for the lock with that name now, of any kind, in all
// sessions that [Redis.Session] has opened. A caller waits from when it has found the lock held
// until its Lock or Acquire returns.
func (r *Redis) Waiters(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiters[name]
}

// AwaitWaiters blocks until at least n callers wait for the lock with that name, as
// [Redis.Waiters] counts them; the Waiting hooks of the test's own have returned for each of them
// by then. It ends the test when that does not happen within 30 s. Like FailNow it must be called
// from the goroutine that runs the test.
func (r *Redis) AwaitWaiters(tb testing.TB, name string, n int) {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r.mu.Lock()
		now := r.waiters[name]
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		if now >= n {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			tb.Fatalf("relocktest: %d callers wait for %q after %v, not %d", now, name, patience, n)
		}
	}
}
