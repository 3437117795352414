package claim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A command that brings the end of a lock closer has run, and its answer counts for nothing. A nested Lock, with a shorter
// lease, does not bring back the trust of before.
func TestAnUnansweredEndThatCameCloserIsTrusted(t *testing.T) {
	const long, short = 30 * time.Second, 10 * time.Second
	for _, c := range []struct {
		name, script string
		answered     bool // behind the end of the hold
		cut          func(ctx context.Context, outer, inner *rlock.Hold) error
	}{
		{"Extend is given up", "extend", false, func(ctx context.Context, outer, _ *rlock.Hold) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return outer.Extend(ctx, short)
		}},
		{"Extend is answered behind the end", "extend", true, func(ctx context.Context, outer, _ *rlock.Hold) error {
			return outer.Extend(ctx, 500*time.Millisecond)
		}},
		{"Unlock is given up", "release", false, func(_ context.Context, outer, _ *rlock.Hold) error { return outer.Unlock() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 4 * time.Second, ReleaseTimeout: time.Second})
				m := rlock.New(ses, "x")
				section, outer, err := m.Lock(ctx, rlock.Lease(long))
				must(t, err)
				_, inner, err := m.Lock(section, rlock.Lease(short))
				must(t, err)
				seen, release := p.HoldReply(locktest.Calls(t, c.script))
				cut := locktest.Go(func() error { return c.cut(ctx, outer, inner) })
				locktest.Get(t, seen, 10*time.Second, "the command")
				time.Sleep(600 * time.Millisecond) // the end of the shortest hold
				if c.answered {
					release()
				}
				if err := locktest.Get(t, cut, 10*time.Second, "the answer"); !errors.Is(err, rlock.ErrUnavailable) && !errors.Is(err, rlock.ErrLost) {
					t.Fatalf("it returned %v", err)
				}
				release()
				_, last, err := m.Lock(section)
				must(t, err)
				trusted, stands := last.Remaining(), locktest.PTTL(t, s, "x")
				if stands > 15*time.Second || trusted > stands {
					t.Errorf("the lock stands for %v, and is trusted for %v", stands, trusted)
				}
				must(t, last.Unlock())
			})
		})
	}
}

// Nor does a renewal that has run before the end came closer, and is answered behind it.
func TestARenewalBeforeTheEndCameCloser(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 3*time.Minute)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 12 * time.Second})
		m := rlock.New(ses, "x")
		renewed, answer := p.HoldReply(locktest.Calls(t, "renew"))
		section, h, err := m.Lock(rlock.WithOwner(ctx, "me"), rlock.Lease(2*time.Minute))
		must(t, err)
		locktest.Get(t, renewed, 30*time.Second, "the renewal")
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		locktest.Is(t, "Extend", h.Extend(brief, 8*time.Second), rlock.ErrUnavailable)
		answer()
		_, last, err := m.Lock(section)
		must(t, err)
		if trusted, stands := last.Remaining(), locktest.PTTL(t, s, "x"); trusted > stands {
			t.Errorf("the lock stands for %v, and is trusted for %v", stands, trusted)
		}
	})
}
