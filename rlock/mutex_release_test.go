package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestDoReleasesOnPanicAndGoexit(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 10*time.Second)
		m := rlock.New(ses, "x")
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			m.Do(ctx, func(context.Context) error { panic("boom") })
		}()
		locktest.NothingLeft(t, s, ses)
		var wg sync.WaitGroup
		wg.Go(func() {
			m.Do(ctx, func(context.Context) error { runtime.Goexit(); return nil })
		})
		wg.Wait()
		locktest.NothingLeft(t, s, ses)

		mine := errors.New("mine")
		err := m.Do(ctx, func(context.Context) error { return mine })
		if !errors.Is(err, mine) || errors.Is(err, rlock.ErrLost) {
			t.Errorf("Do returned %v", err)
		}
		err = m.Do(ctx, func(context.Context) error {
			s.FlushAll(t)
			return mine
		})
		if !errors.Is(err, mine) || !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Do with a lost lock returned %v", err)
		}
		must(t, m.Do(ctx, func(context.Context) error { return nil }))
	})
}

// A hold is a value: another goroutine may unlock it, once (R28).
func TestUnlockFromAnotherGoroutine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		_, h, err := rlock.New(ses, "x").Lock(within(t, 10*time.Second))
		must(t, err)
		var released, notHeld atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				switch err := h.Unlock(); {
				case err == nil:
					released.Add(1)
				case errors.Is(err, rlock.ErrNotHeld):
					notHeld.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if released.Load() != 1 || notHeld.Load() != 7 {
			t.Errorf("%d released, %d not held", released.Load(), notHeld.Load())
		}
		locktest.NothingLeft(t, s, ses)
	})
}

func TestLocker(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		// Even an owner in ctx does not make the goroutines re-enter.
		l := rlock.New(ses, "x").Locker(rlock.WithOwner(ctx, "all of us"))
		counter := 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					l.Lock()
					counter++
					l.Unlock()
				}
			})
		}
		wg.Wait()
		if counter != 80 {
			t.Errorf("counter %d", counter)
		}
		panics := func(f func()) (v any) {
			defer func() { v = recover() }()
			f()
			return nil
		}
		if err, _ := panics(l.Unlock).(error); !errors.Is(err, rlock.ErrNotHeld) {
			t.Errorf("Unlock without Lock: %v", err)
		}
		l.Lock()
		s.FlushAll(t)
		if err, _ := panics(l.Unlock).(error); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of a lost lock: %v", err)
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		if err, _ := panics(rlock.New(ses, "x").Locker(over).Lock).(error); !errors.Is(err, context.Canceled) {
			t.Errorf("Lock on a ctx that is over: %v", err)
		}
		locktest.NothingLeft(t, s, ses)
	})
}

func TestForceUnlockFreesAnyOwnersHold(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{PollFloor: time.Minute})
		ctx := within(t, 20*time.Second)
		m := rlock.New(a, "x")
		if was, err := m.ForceUnlock(ctx); was || err != nil {
			t.Errorf("ForceUnlock of a free lock: %v, %v", was, err)
		}
		section, h, err := m.Lock(ctx)
		must(t, err)
		in := make(chan error, 1)
		go func() {
			_, h, err := rlock.New(b, "x").Lock(ctx)
			in <- errors.Join(err, h.Unlock())
		}()
		redistest.Eventually(t, 5*time.Second, "the waiter to stand in the line", func() bool {
			return slices.Contains(s.Keys(t), "relock_line1:{x}")
		})
		if was, err := rlock.New(b, "x").ForceUnlock(ctx); !was || err != nil {
			t.Errorf("ForceUnlock: %v, %v", was, err)
		}
		// At once, not at the next renewal 10 s later, and the waiter not at its own look at the TTL 30 s
		// later: its poll floor is a minute.
		locktest.Ends(t, section, s.Slack(), rlock.ErrLost)
		must(t, locktest.Get(t, in, s.Slack(), "a message wakes the waiter"))
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock after ForceUnlock: %v", err)
		}
		locktest.NothingLeft(t, s, a, b)
	})
}
