package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Holders with the same named owner re-enter each other's lock, in this session and in
// another; it is free when all of them have unlocked.
func TestNamedOwnerIsSharedBetweenSessions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "request-1")
		var holds []*rlock.Hold
		for i, ses := range []*rlock.Session{a, b, a, b} {
			_, h, err := rlock.New(ses, "x").Lock(me)
			must(t, err)
			holds = append(holds, h)
			if got := hget(t, s, "x", "request-1"); got != fmt.Sprint(i+1) {
				t.Errorf("count %q after %d locks", got, i+1)
			}
		}
		if _, _, err := rlock.New(b, "x").TryLock(rlock.WithOwner(ctx, "request-2")); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("another owner: %v", err)
		}
		for i, h := range holds {
			if _, _, err := rlock.New(b, "x").TryLock(ctx); !errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("after %d Unlocks another owner got %v", i, err)
			}
			must(t, h.Unlock())
		}
		_, h, err := rlock.New(b, "x").TryLock(ctx)
		must(t, err)
		must(t, h.Unlock())
	})
}

// An owner that a session made and that is passed on by its id is counted right on both
// sides, although the first session did not know that it is shared.
func TestGeneratedOwnerPassedOn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		section, outer, err := rlock.New(a, "x").Lock(ctx)
		must(t, err)
		id, _ := rlock.OwnerFrom(section)
		count := func(want string) {
			t.Helper()
			if got := hget(t, s, "x", id); got != want {
				t.Errorf("count %q, want %q", got, want)
			}
		}
		_, far, err := rlock.New(b, "x").Lock(rlock.WithOwner(ctx, id)) // as an RPC header would carry it
		must(t, err)
		count("2")
		_, inner, err := rlock.New(a, "x").Lock(section)
		must(t, err)
		count("3")
		must(t, inner.Unlock())
		count("2")
		must(t, far.Unlock())
		count("1")
		_, far, err = rlock.New(b, "x").Lock(section) // or the context itself, in one process
		must(t, err)
		count("2")
		must(t, outer.Unlock())
		count("1")
		if _, _, err := rlock.New(a, "x").TryLock(ctx); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("while the far side holds: %v", err)
		}
		must(t, far.Unlock())
		count("")
	})
}

// A named owner that holds the lock elsewhere gets in although others of this session
// stand in line before it: the line waits for its very hold.
func TestNamedOwnerPassesTheLine(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{PollFloor: 300 * time.Millisecond})
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "request-1")
		_, there, err := rlock.New(a, "x").Lock(me)
		must(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := rlock.New(b, "x").Do(ctx, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		redistest.Eventually(t, 5*time.Second, "the line to stand", func() bool { return b.WaitersOf("x") == 3 })
		_, here, err := rlock.New(b, "x").Lock(me)
		must(t, err)
		must(t, here.Unlock())

		// It may also take the lock there while it stands in line here.
		must(t, there.Unlock())
		wg.Wait()
		_, block, err := rlock.New(a, "x").Lock(ctx)
		must(t, err)
		wg.Go(func() {
			if err := rlock.New(b, "x").Do(ctx, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
		redistest.Eventually(t, 5*time.Second, "one in front", func() bool { return b.WaitersOf("x") == 1 })
		in := make(chan error, 1)
		go func() {
			_, h, err := rlock.New(b, "x").Lock(me)
			if err == nil {
				err = h.Unlock()
			}
			in <- err
		}()
		redistest.Eventually(t, 5*time.Second, "the owner in line", func() bool { return b.WaitersOf("x") == 2 })
		// Hand the lock over inside Redis, so that nobody is woken.
		must(t, s.Do(t, "HDEL", "x", block.Owner()).Error())
		must(t, s.Do(t, "HSET", "x", "request-1", "1").Error())
		must(t, s.Do(t, "PEXPIRE", "x", "60000").Error())
		must(t, <-in)
		must(t, s.Do(t, "DEL", "x").Error())
		wg.Wait()
		if err := block.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("the hold that was taken away: %v", err)
		}
	})
}

// Goroutines that share a section and lock another name with it are one owner there:
// they nest, whichever comes first.
func TestGoroutinesOfOneSectionShareItsOwner(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		section, h, err := rlock.New(a, "outer").Lock(ctx)
		must(t, err)
		for range 20 {
			const n = 8
			_, block, err := rlock.New(b, "inner").Lock(ctx)
			must(t, err)
			var entered, left sync.WaitGroup
			entered.Add(n)
			for range n {
				left.Go(func() {
					_, h, err := rlock.New(a, "inner").Lock(section)
					entered.Done()
					if err != nil {
						t.Error(err)
						return
					}
					entered.Wait() // all hold it together, or this hangs
					if err := h.Unlock(); err != nil {
						t.Error(err)
					}
				})
			}
			must(t, block.Unlock())
			left.Wait()
			if got, _ := s.Do(t, "EXISTS", "inner").AsInt64(); got != 0 {
				t.Fatal("the inner lock is still held")
			}
		}
		must(t, h.Unlock())
		nothingLeft(t, s, a, b)
	})
}

// A session with a name of its own does not take a predecessor's leftover for its own.
func TestSessionWithAFixedIDMeetsItsLeftovers(t *testing.T) {
	s := redistest.Mini(t)
	ctx := within(t, 10*time.Second)
	owners := map[string]bool{}
	for range 50 {
		ses, err := rlock.Dial(ctx, s.Option(), rlock.Config{ID: "worker-1"})
		must(t, err)
		_, h, err := rlock.New(ses, "x").Lock(ctx)
		must(t, err)
		if owners[h.Owner()] {
			t.Fatalf("owner %q a second time", h.Owner())
		}
		owners[h.Owner()] = true
		must(t, ses.Close())
	}
}

// A nested TryLock or Lock with Wait by an owner whose other goroutine is still waiting
// for the same lock does not wait for that.
func TestTryLockDoesNotWaitForItsOwnOwner(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "me")
		_, block, err := rlock.New(b, "x").Lock(ctx)
		must(t, err)
		in := make(chan error, 1)
		go func() {
			_, h, err := rlock.New(a, "x").Lock(me)
			if err == nil {
				err = h.Unlock()
			}
			in <- err
		}()
		redistest.Eventually(t, 5*time.Second, "the first to wait", func() bool { return a.WaitersOf("x") == 1 })
		if _, _, err := rlock.New(a, "x").TryLock(me); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("TryLock: %v", err)
		}
		if _, _, err := rlock.New(a, "x").Lock(me, rlock.Wait(20*time.Millisecond)); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("Lock with Wait: %v", err)
		}
		must(t, block.Unlock())
		must(t, <-in)
		nothingLeft(t, s, a, b)
	})
}
