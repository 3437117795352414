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

// A fixed lease is not renewed: it ends, its section with it, and Unlock says so.
func TestFixedLeaseEnds(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		lease := s.Slowed(400 * time.Millisecond)
		section, h, err := rlock.New(a, "x").Lock(ctx, rlock.Lease(lease))
		must(t, err)
		if left := h.Remaining(); left <= 0 || left > lease*19/20 {
			t.Errorf("Remaining() = %v, want at most the lease less 5 %%", left)
		}
		_, other, err := rlock.New(b, "x").Lock(ctx)
		must(t, err)
		if section.Err() == nil || context.Cause(section) != rlock.ErrLost {
			t.Errorf("another one is in, and the section has cause %v", context.Cause(section))
		}
		if h.Remaining() != 0 {
			t.Errorf("Remaining() = %v after the end", h.Remaining())
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrNotHeld) {
			t.Errorf("second Unlock: %v", err)
		}
		if got := locktest.Field(t, s, "x", other.Owner()); got != "1" {
			t.Errorf("the successor's hold is %q", got)
		}
		must(t, other.Unlock())
		locktest.NothingLeft(t, s, a, b)
	})
}

// Unlocking an inner hold never lengthens a fixed lease (R24), and a lock whose longer
// inner hold is unlocked lives no longer than the outer one deserves.
func TestInnerHoldsLeaveTheOuterLeaseAlone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		m := rlock.New(ses, "x")
		pttl := func() time.Duration {
			n, err := s.Do(t, "PTTL", "x").AsInt64()
			must(t, err)
			return time.Duration(n) * time.Millisecond
		}
		for _, inner := range [][]rlock.LockOption{
			{}, {rlock.Lease(time.Minute)}, {rlock.Lease(time.Second)},
		} {
			section, outer, err := m.Lock(ctx, rlock.Lease(8*time.Second))
			must(t, err)
			_, in, err := m.Lock(section, inner...)
			must(t, err)
			if left := in.Remaining(); len(inner) == 0 && left < 25*time.Second {
				t.Errorf("an inner hold that is renewed has %v", left)
			}
			must(t, in.Unlock())
			if got := pttl(); got > 8*time.Second || got < 6*time.Second {
				t.Errorf("TTL %v after the inner Unlock, want what the outer lease has left", got)
			}
			if left := outer.Remaining(); left > 8*time.Second {
				t.Errorf("the outer hold has %v", left)
			}
			must(t, outer.Unlock())
		}
		locktest.NothingLeft(t, s, ses)
	})
}

// A nested hold with a fixed lease ends alone; the owner goes on holding.
func TestNestedFixedLeaseEndsAlone(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		m := rlock.New(ses, "x")
		section, outer, err := m.Lock(ctx)
		must(t, err)
		inner, h, err := m.Lock(section, rlock.Lease(200*time.Millisecond))
		must(t, err)
		<-inner.Done()
		if context.Cause(inner) != rlock.ErrLost || section.Err() != nil {
			t.Errorf("inner cause %v, outer %v", context.Cause(inner), section.Err())
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of the inner hold: %v", err)
		}
		if got := locktest.Field(t, s, "x", outer.Owner()); got != "1" {
			t.Errorf("count %q, want 1", got)
		}
		must(t, outer.Unlock())
		locktest.NothingLeft(t, s, ses)
	})
}

func TestExtend(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		m := rlock.New(ses, "x")
		section, h, err := m.Lock(ctx, rlock.Lease(10*time.Second))
		must(t, err)
		must(t, h.Extend(ctx, 40*time.Second))
		if left := h.Remaining(); left < 35*time.Second || left > 39*time.Second {
			t.Errorf("Remaining() = %v after Extend to 40 s", left)
		}
		if n, _ := s.Do(t, "PTTL", "x").AsInt64(); n < 35000 || n > 40000 {
			t.Errorf("PTTL %d", n)
		}
		must(t, h.Extend(ctx, 300*time.Millisecond)) // sooner is possible too
		if n, _ := s.Do(t, "PTTL", "x").AsInt64(); n > 300 {
			t.Errorf("PTTL %d after Extend to 300 ms", n)
		}
		<-section.Done()
		if err := h.Extend(ctx, time.Second); !errors.Is(err, rlock.ErrLost) || context.Cause(section) != rlock.ErrLost {
			t.Errorf("Extend after the end: %v, cause %v", err, context.Cause(section))
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		if err := h.Extend(ctx, time.Second); !errors.Is(err, rlock.ErrNotHeld) {
			t.Errorf("Extend after Unlock: %v", err)
		}
		_, h, err = m.Lock(ctx, rlock.Lease(10*time.Second))
		must(t, err)
		s.FlushAll(t)
		if err := h.Extend(ctx, time.Second); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Extend of a deleted lock: %v", err)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("Extend has brought back %q", keys)
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of a deleted lock: %v", err)
		}
		locktest.NothingLeft(t, s, ses)
	})
}

// A lock that is deleted under a fixed lease is noticed in the course of the lease,
// although nothing renews it (R1).
func TestDeletedUnderAFixedLease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: 600 * time.Millisecond})
		ctx := within(t, 20*time.Second)
		section, h, err := rlock.New(ses, "x").Lock(ctx, rlock.Lease(time.Hour))
		must(t, err)
		must(t, s.Do(t, "DEL", "x").Error())
		<-section.Done()
		if context.Cause(section) != rlock.ErrLost {
			t.Errorf("cause %v", context.Cause(section))
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
	})
}

// The watchdog renews for as long as the context given to the outermost Lock lives.
func TestRenewalEndsWithTheOutermostContext(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 3 * time.Second
		a, b := dial(t, s, rlock.Config{Lease: lease}), dial(t, s, rlock.Config{})
		ctx, cancel := context.WithCancel(within(t, 60*time.Second))
		_, h, err := rlock.New(a, "x").Lock(ctx)
		must(t, err)
		if _, _, err := rlock.New(b, "x").Lock(context.Background(), rlock.Wait(4*lease)); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Fatalf("the lock was not renewed: %v", err)
		}
		cancel()
		_, other, err := rlock.New(b, "x").Lock(within(t, 20*time.Second))
		must(t, err)
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock one lease later: %v", err)
		}
		if got := locktest.Field(t, s, "x", other.Owner()); got != "1" {
			t.Errorf("the successor's hold is %q", got)
		}
		must(t, other.Unlock())
		locktest.NothingLeft(t, s, a, b)
	})
}
