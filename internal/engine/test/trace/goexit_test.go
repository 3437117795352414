package trace_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// quitting has hooks one of which ends its goroutine, as t.FailNow does, once it is armed. They count what has begun and
// not ended.
type quitting struct {
	armed   atomic.Value
	mu      sync.Mutex
	open    map[string]int
	between func() // runs in Waiting, if it is not nil
}

func (q *quitting) at(hook, what string, by int) {
	q.mu.Lock()
	q.open[what] += by
	q.mu.Unlock()
	if q.armed.CompareAndSwap(hook, "") {
		if hook == "Waiting" && q.between != nil {
			q.between()
		}
		runtime.Goexit()
	}
}

func (q *quitting) trace() *rlock.Trace {
	q.open = map[string]int{}
	q.armed.Store("")
	return &rlock.Trace{
		AcquireStart: func(ctx context.Context, _ locktrace.AcquireStart) context.Context {
			q.at("AcquireStart", "calls", 1)
			return ctx
		},
		Waiting:    func(context.Context, locktrace.Waiting) { q.at("Waiting", "", 0) },
		AcquireEnd: func(context.Context, locktrace.AcquireEnd) { q.at("AcquireEnd", "calls", -1) },
		HoldStart: func(ctx context.Context, _ locktrace.HoldStart) context.Context {
			q.at("HoldStart", "holds", 1)
			return ctx
		},
		HoldEnd: func(context.Context, locktrace.HoldEnd) { q.at("HoldEnd", "holds", -1) },
		Attempt: func(locktrace.Attempt) { q.at("Attempt", "", 0) },
		ReleaseStart: func(ctx context.Context, _ locktrace.ReleaseStart) context.Context {
			q.at("ReleaseStart", "releases", 1)
			return ctx
		},
		ReleaseEnd: func(context.Context, locktrace.ReleaseEnd) { q.at("ReleaseEnd", "releases", -1) },
	}
}

// quits runs fn in a goroutine that a hook ends.
func (q *quitting) quits(t *testing.T, hook string, fn func()) {
	t.Helper()
	over, returned := make(chan struct{}), false
	q.armed.Store(hook)
	go func() {
		defer close(over)
		fn()
		returned = true
	}()
	locktest.Get(t, over, 20*time.Second, hook+": the end of the goroutine")
	if returned {
		t.Errorf("%s: the hook was not called", hook)
	}
}

// settled checks that nothing is left of a call: in the session, for the hooks, and in Redis.
func (q *quitting) settled(t *testing.T, s *redistest.Server, ses *rlock.Session, what string) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, what+": nothing to be left of the call", func() bool {
		held, asking, locks, scheduled, active := locktest.Books(ses)
		return held+asking+locks+scheduled+active == 0
	})
	redistest.Eventually(t, 10*time.Second, what+": the lock to be free", func() bool { return locktest.Free(t, s, "x") })
	q.mu.Lock()
	defer q.mu.Unlock()
	for what, n := range q.open {
		if n != 0 {
			t.Errorf("%s: of the %s %d have no end", what, what, n)
		}
	}
}

// A hook that ends the goroutine of its call leaves nothing of it: else a lock would be held, and renewed, that has no owner,
// and the next callers of that name would wait for it.
func TestAHookThatEndsItsGoroutine(t *testing.T) {
	kinds := map[string]func(*rlock.Session) locktest.Mutex{
		"plain": func(ses *rlock.Session) locktest.Mutex { return rlock.New(ses, "x") },
		"fair":  func(ses *rlock.Session) locktest.Mutex { return fairlock.New(ses, "x") },
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for kind, mutex := range kinds {
			q := new(quitting)
			ses := dial(t, s, rlock.Config{Trace: q.trace()})
			m, other, ctx := mutex(ses), mutex(dial(t, s, rlock.Config{})), within(t, time.Minute)
			for _, hook := range []string{"Attempt", "AcquireEnd", "HoldStart"} {
				q.quits(t, hook, func() { _, _, _ = m.Lock(ctx) })
				q.settled(t, s, ses, kind+", "+hook)
			}
			for _, hook := range []string{"ReleaseStart", "ReleaseEnd", "HoldEnd"} {
				_, h, err := m.Lock(ctx)
				must(t, err)
				q.quits(t, hook, func() { _ = h.Unlock() })
				q.settled(t, s, ses, kind+", "+hook)
			}
			_, h, err := m.Lock(ctx)
			must(t, err)
			q.quits(t, "ReleaseStart", h.UnlockAsync)
			q.settled(t, s, ses, kind+", ReleaseStart of an UnlockAsync")

			_, h, err = other.Lock(ctx)
			must(t, err)
			q.quits(t, "Waiting", func() { _, _, _ = m.Lock(ctx) })
			must(t, h.Unlock())
			q.settled(t, s, ses, kind+", Waiting")

			_, h, err = m.Lock(ctx)
			must(t, err)
			q.between = func() { must(t, h.Unlock()) } // which gives it the lock
			q.quits(t, "Waiting", func() { _, _, _ = m.Lock(ctx) })
			q.between = nil
			q.settled(t, s, ses, kind+", Waiting, with the lock")
		}
	})
}

// The same of nested holds, whose lock goes on.
func TestAHookThatEndsItsGoroutineInASection(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		q := new(quitting)
		ses := dial(t, s, rlock.Config{Trace: q.trace()})
		m := rlock.New(ses, "x")
		section, h, err := m.Lock(within(t, time.Minute))
		must(t, err)
		for _, hook := range []string{"Attempt", "AcquireEnd", "HoldStart"} {
			q.quits(t, hook, func() { _, _, _ = m.Lock(section) })
		}
		for _, unlock := range []func(*rlock.Hold){func(h *rlock.Hold) { _ = h.Unlock() }, (*rlock.Hold).UnlockAsync} {
			_, inner, err := m.Lock(section)
			must(t, err)
			q.quits(t, "ReleaseStart", func() { unlock(inner) })
		}
		redistest.Eventually(t, 10*time.Second, "the inner holds to be gone", func() bool { return locktest.Field(t, s, "x", h.Owner()) == "1" })
		_, inner, err := m.Lock(section)
		must(t, err)
		must(t, inner.Unlock())
		must(t, section.Err())
		must(t, h.Unlock())
		q.settled(t, s, ses, "the section")
	})
}
