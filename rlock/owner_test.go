package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
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
			if got := locktest.Field(t, s, "x", "request-1"); got != fmt.Sprint(i+1) {
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

// A Lock by the name of an owner whose lock Redis has lost, which nobody has noticed yet, takes it anew: only the section
// that was lost hears of the loss.
func TestALockByNameTakesALostLockAnew(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		m, me := rlock.New(ses, "x"), rlock.WithOwner(within(t, 20*time.Second), "request-1")
		for name, lock := range map[string]func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error){"Lock": m.Lock, "TryLock": m.TryLock} {
			first, lost, err := m.Lock(me)
			must(t, err)
			must(t, s.Do(t, "DEL", "x").Error())
			section, h, err := lock(me)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			locktest.Is(t, "the section before", context.Cause(first), rlock.ErrLost)
			locktest.Is(t, "its Unlock", lost.Unlock(), rlock.ErrLost)
			if section.Err() != nil || locktest.Field(t, s, "x", "request-1") != "1" {
				t.Errorf("%s: %v, count %s", name, context.Cause(section), locktest.Field(t, s, "x", "request-1"))
			}
			must(t, h.Unlock())
		}
		locktest.NothingLeft(t, s, ses)
	})
}

// A Lock inside of a section that turns out to be lost is ErrLost, also where the section was joined by name.
func TestALockInsideOfALostSection(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m, me := rlock.New(dial(t, s, rlock.Config{}), "x"), rlock.WithOwner(within(t, 20*time.Second), "request-1")
		for _, joins := range []bool{false, true} {
			inside, first, err := m.Lock(me)
			must(t, err)
			if joins {
				inside, _, err = m.Lock(me)
				must(t, err)
			}
			must(t, s.Do(t, "DEL", "x").Error())
			_, _, err = m.Lock(inside)
			locktest.Is(t, fmt.Sprintf("joins %v", joins), err, rlock.ErrLost)
			locktest.Is(t, "its Unlock", first.Unlock(), rlock.ErrLost)
		}
	})
}

// The owner of a section is private: it cannot be named to WithOwner, and in another session a
// Lock on the section's context is an outermost one.
func TestPrivateOwnerIsNotPassedOn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		section, h, err := rlock.New(a, "x").Lock(ctx)
		must(t, err)
		if id, ok := rlock.OwnerFrom(section); ok {
			t.Errorf("OwnerFrom = %q", id)
		}
		for _, ses := range []*rlock.Session{a, b} {
			if _, _, err := rlock.New(ses, "x").TryLock(rlock.WithOwner(ctx, h.Owner())); !errors.Is(err, rlock.ErrArgument) {
				t.Errorf("TryLock as the owner of a section: %v", err)
			}
		}
		if _, _, err := rlock.New(b, "x").TryLock(section); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("TryLock by another session: %v", err)
		}
		must(t, h.Unlock())
		_, far, err := rlock.New(b, "x").TryLock(context.WithoutCancel(section))
		must(t, err)
		if far.Owner() == h.Owner() {
			t.Errorf("owner %q a second time", far.Owner())
		}
		must(t, far.Unlock())
		locktest.NothingLeft(t, s, a, b)
	})
}

// A named owner that holds the lock elsewhere gets in although others of this session
// stand in the queue before it: the queue waits for its very hold.
func TestNamedOwnerPassesTheQueue(t *testing.T) {
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
		redistest.Eventually(t, 5*time.Second, "the queue to stand", func() bool { return locktest.WaitersOf(b, "x") == 3 })
		_, here, err := rlock.New(b, "x").Lock(me)
		must(t, err)
		must(t, here.Unlock())

		// It may also take the lock there while it stands in the queue here.
		must(t, there.Unlock())
		wg.Wait()
		_, block, err := rlock.New(a, "x").Lock(ctx)
		must(t, err)
		wg.Go(func() {
			if err := rlock.New(b, "x").Do(ctx, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
		redistest.Eventually(t, 5*time.Second, "one in front", func() bool { return locktest.WaitersOf(b, "x") == 1 })
		in := make(chan error, 1)
		go func() {
			_, h, err := rlock.New(b, "x").Lock(me)
			if err == nil {
				err = h.Unlock()
			}
			in <- err
		}()
		redistest.Eventually(t, 5*time.Second, "the owner in the queue", func() bool { return locktest.WaitersOf(b, "x") == 2 })
		// Hand the lock over inside Redis, so that nobody is woken.
		must(t, s.Do(t, "EVAL", `redis.call('HDEL', KEYS[1], ARGV[1])
			redis.call('HSET', KEYS[1], 'request-1', '1')
			return redis.call('PEXPIRE', KEYS[1], 60000)`, "1", "x", block.Owner()).Error())
		must(t, <-in)
		must(t, s.Do(t, "DEL", "x").Error())
		wg.Wait()
		if err := block.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("the hold that was taken away: %v", err)
		}
	})
}

// Goroutines that share a section of one lock exclude each other in another one.
func TestGoroutinesOfOneSectionExcludeEachOtherElsewhere(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		section, h, err := rlock.New(ses, "outer").Lock(within(t, 30*time.Second))
		must(t, err)
		var inside atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					err := rlock.New(ses, "inner").Do(section, func(context.Context) error {
						if inside.Add(1) != 1 {
							t.Error("two are inside")
						}
						inside.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		must(t, h.Unlock())
		locktest.NothingLeft(t, s, ses)
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
		redistest.Eventually(t, 5*time.Second, "the first to wait", func() bool { return locktest.WaitersOf(a, "x") == 1 })
		if _, _, err := rlock.New(a, "x").TryLock(me); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("TryLock: %v", err)
		}
		if _, _, err := rlock.New(a, "x").Lock(me, rlock.Wait(20*time.Millisecond)); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("Lock with Wait: %v", err)
		}
		must(t, block.Unlock())
		must(t, <-in)
		locktest.NothingLeft(t, s, a, b)
	})
}

// A named owner's hold is released by its own id: when the one that is unlocked had gone with an
// earlier life of the lock, a hold of the present life that another session has stays, and one
// that the same session has is released with the claim that is lost.
func TestNamedOwnerReleasesItsOwnHolds(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		me := rlock.WithOwner(within(t, 20*time.Second), "me")
		_, outer, err := rlock.New(a, name).Lock(me)
		must(t, err)
		must(t, s.Do(t, "DEL", name).Error())
		_, other, err := rlock.New(b, name).Lock(me)
		must(t, err)
		_, inner, err := rlock.New(a, name).Lock(me)
		must(t, err)
		if err := outer.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of the hold that had gone: %v, want ErrLost", err)
		}
		if err := inner.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of a hold of a lost claim: %v, want ErrLost", err)
		}
		redistest.Eventually(t, 5*time.Second, "the other session's hold alone to stand", func() bool {
			st, err := rlock.New(b, name).State(me)
			must(t, err)
			return st.Owners["me"] == 1
		})
		must(t, other.Unlock())
	})
}
