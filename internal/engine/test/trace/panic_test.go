package trace_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A hook that panics would leave its call in the middle: a waiter's place in the queue, or a lock that no
// caller has. Where callers recover, as handlers of net/http do, that name was dead for the process.
// The calls go on instead, and the Logger is told of each hook.
func TestHooksThatPanicBreakNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		j := new(locktest.Journal)
		ses := dial(t, s, rlock.Config{Trace: panicking(), Logger: j.Logger()})
		other := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		plain, fair := rlock.New(ses, name), fairlock.New(ses, name+"fair")
		for range 2 { // what the first round leaves would stop the second one
			for what, c := range map[string]struct{ mine, others locktest.Mutex }{
				"plain": {plain, rlock.New(other, name)},
				"fair":  {fair, fairlock.New(other, name+"fair")},
			} {
				_, h, err := c.others.Lock(ctx)
				must(t, err)
				first, second := panicLock(ctx, c.mine), panicLock(ctx, c.mine) // they wait, and one hands over
				_, _, err = c.mine.TryLock(ctx)
				locktest.Is(t, what+": TryLock", err, rlock.ErrNotAcquired)
				must(t, h.Unlock())
				for range 2 {
					select {
					case err = <-first:
					case err = <-second:
					}
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
			}
		}
		for _, hook := range []string{"AcquireStart", "Waiting", "AcquireEnd", "HoldStart", "HoldEnd", "ReleaseStart", "ReleaseEnd", "Attempt"} {
			redistest.Eventually(t, 10*time.Second, "the Logger is told of "+hook, func() bool {
				return j.Count(`a hook has panicked; the session goes on" hook=`+hook+" ") > 0
			})
		}
	})
}

// panicLock locks and unlocks, and returns how that ends; a panic too.
func panicLock(ctx context.Context, m locktest.Mutex) <-chan error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("panic: %v", v)
			}
		}()
		_, h, err := m.Lock(ctx)
		if err == nil {
			err = h.Unlock()
		}
		done <- err
	}()
	return done
}

// panicking has hooks all of which panic.
func panicking() *rlock.Trace {
	return &rlock.Trace{
		AcquireStart: func(context.Context, locktrace.AcquireStart) context.Context { panic("AcquireStart") },
		Waiting:      func(context.Context, locktrace.Waiting) { panic("Waiting") },
		AcquireEnd:   func(context.Context, locktrace.AcquireEnd) { panic("AcquireEnd") },
		HoldStart:    func(context.Context, locktrace.HoldStart) context.Context { panic("HoldStart") },
		HoldEnd:      func(context.Context, locktrace.HoldEnd) { panic("HoldEnd") },
		ReleaseStart: func(context.Context, locktrace.ReleaseStart) context.Context { panic("ReleaseStart") },
		ReleaseEnd:   func(context.Context, locktrace.ReleaseEnd) { panic("ReleaseEnd") },
		Attempt:      func(locktrace.Attempt) { panic("Attempt") },
		HandedOver:   func(locktrace.HandedOver) { panic("HandedOver") },
		Lost:         func(locktrace.Lost) { panic("Lost") },
		Renewed:      func(locktrace.Renewed) { panic("Renewed") },
		Subscription: func(locktrace.Subscription) { panic("Subscription") },
	}
}

// A Backoff of Retry that panics, or ends its goroutine, ends its call, and the hooks are told so: a span would stay open
// for good.
func TestTraceOfARetryThatPanics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		starts, ends := 0, []locktrace.AcquireEnd(nil)
		ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
			AcquireStart: func(ctx context.Context, _ locktrace.AcquireStart) context.Context { starts++; return ctx },
			AcquireEnd:   func(_ context.Context, e locktrace.AcquireEnd) { ends = append(ends, e) },
		}})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		_, h, err := rlock.New(dial(t, s, rlock.Config{}), name).Lock(ctx)
		must(t, err)
		named := rlock.WithOwner(ctx, "a")
		for what, backoff := range map[string]rlock.Backoff{
			"panic":  func(int) time.Duration { panic("boom") },
			"Goexit": func(int) time.Duration { runtime.Goexit(); return 0 },
		} {
			for _, ctx := range []context.Context{ctx, named} {
				starts, ends = 0, nil
				over := make(chan any, 1)
				go func() {
					defer func() { over <- recover() }()
					_, _, err := rlock.New(ses, name).Lock(ctx, rlock.Retry(backoff))
					t.Errorf("%s: Lock returns %v", what, err)
				}()
				if v := locktest.Get(t, over, 10*time.Second, what); (v == "boom") != (what == "panic") {
					t.Errorf("%s: the caller recovers %v", what, v)
				}
				if starts != 1 || len(ends) != 1 || ends[0].Outcome != locktrace.OutcomeRefused || ends[0].Attempts != 1 {
					t.Errorf("%s: %d starts, and the ends %+v", what, starts, ends)
				}
			}
		}
		must(t, h.Unlock())
		must(t, rlock.New(ses, name).Do(ctx, func(context.Context) error { return nil }))
	})
}
