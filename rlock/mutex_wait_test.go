package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestTryLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 10*time.Second)
		section, h, err := rlock.New(a, "x").TryLock(ctx)
		must(t, err)
		for _, ses := range []*rlock.Session{a, b} {
			got, none, err := rlock.New(ses, "x").TryLock(ctx)
			if !errors.Is(err, rlock.ErrNotAcquired) || got != ctx || none != nil {
				t.Errorf("TryLock of a held lock: %v, %v", none, err)
			}
			if isCtx := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded); isCtx {
				t.Errorf("%v matches a context error", err)
			}
			if _, _, err := rlock.New(ses, "x").Lock(ctx, rlock.Wait(0)); !errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("Wait(0): %v", err)
			}
		}
		_, nested, err := rlock.New(a, "x").TryLock(section)
		must(t, err)
		must(t, nested.Unlock())
		must(t, h.Unlock())
		_, h, err = rlock.New(b, "x").TryLock(ctx)
		must(t, err)
		must(t, h.Unlock())
		locktest.NothingLeft(t, s, a, b)
	})
}

// Wait bounds the waiting alone: neither a success nor the section is bounded by it.
func TestWaitBoundsTheWaitingAlone(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 10*time.Second)
		_, h, err := rlock.New(a, "x").Lock(ctx)
		must(t, err)
		for _, ses := range []*rlock.Session{a, b} {
			began := time.Now()
			_, _, err = rlock.New(ses, "x").Lock(ctx, rlock.Wait(50*time.Millisecond))
			if !errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait over: %v", err)
			}
			if d := time.Since(began); d < 50*time.Millisecond {
				t.Errorf("gave up after %v", d)
			}
		}
		must(t, h.Unlock())
		section, h, err := rlock.New(b, "x").Lock(ctx, rlock.Wait(time.Second))
		must(t, err)
		if want, _ := ctx.Deadline(); true {
			if got, _ := section.Deadline(); !got.Equal(want) {
				t.Error("Wait has bounded the section")
			}
		}
		must(t, h.Unlock())
		locktest.NothingLeft(t, s, a, b)
	})
}

// A ctx that ends while waiting matches both errors; one that was done before the call
// only its own (R7, design 9).
func TestContextEndsWhileWaiting(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		_, h, err := rlock.New(a, "x").Lock(context.Background())
		must(t, err)
		for _, ses := range []*rlock.Session{a, b} {
			ctx, cancel := context.WithCancel(context.Background())
			got := make(chan error, 1)
			go func() {
				_, _, err := rlock.New(ses, "x").Lock(ctx)
				got <- err
			}()
			redistest.Eventually(t, 5*time.Second, "the waiter to wait", func() bool { return locktest.WaitersOf(ses, "x") == 1 })
			cancel()
			if err := <-got; !errors.Is(err, rlock.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled while waiting: %v", err)
			}
			_, _, err = rlock.New(ses, "x").Lock(ctx)
			if !errors.Is(err, context.Canceled) || errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("cancelled before: %v", err)
			}
			dctx, cancel := context.WithTimeout(context.Background(), s.Slowed(30*time.Millisecond))
			_, _, err = rlock.New(ses, "x").Lock(dctx)
			if cancel(); !errors.Is(err, rlock.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("deadline while waiting: %v", err)
			}
		}
		must(t, h.Unlock())
		locktest.NothingLeft(t, s, a, b)
	})
}
