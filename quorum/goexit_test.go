package quorum_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/quorum"
	"relock/rlock"
)

// quitting has hooks of which the armed one ends its goroutine, as t.FailNow does.
func quitting(armed *atomic.Value) *rlock.Trace {
	at := func(hook string) {
		if armed.Load() == hook {
			runtime.Goexit()
		}
	}
	return &rlock.Trace{
		AcquireEnd: func(context.Context, locktrace.AcquireEnd) { at("AcquireEnd") },
		ReleaseStart: func(ctx context.Context, _ locktrace.ReleaseStart) context.Context {
			at("ReleaseStart")
			return ctx
		},
		HoldEnd: func(context.Context, locktrace.HoldEnd) { at("HoldEnd") },
	}
}

// Votes are asked for, and given back, in goroutines of their own. A hook that ends these ends the vote and not the answer: Lock
// and Unlock return.
func TestAHookThatEndsTheGoroutineOfAVote(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		var armed atomic.Value
		armed.Store("")
		ctx := within(t, time.Minute)
		m, other := quorum.New(dial(t, all, rlock.Config{Trace: quitting(&armed)}), "x"), quorum.New(dial(t, all, rlock.Config{}), "x")
		for _, hook := range []string{"AcquireEnd", "ReleaseStart", "HoldEnd"} {
			armed.Store("")
			var h *quorum.Hold
			if hook != "AcquireEnd" {
				_, h = lock(t, ctx, m)
			}
			armed.Store(hook)
			err := locktest.Get(t, locktest.Go(func() error {
				if h != nil {
					return h.Unlock()
				}
				_, _, err := m.TryLock(ctx)
				return err
			}), 20*time.Second, hook+": the end of the call")
			if err == nil && hook != "HoldEnd" {
				t.Errorf("%s: no error", hook)
			}
			armed.Store("")
			_, h = lock(t, ctx, other)
			must(t, h.Unlock())
		}
	})
}
