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

// An owner is shared by two sessions, the lock is deleted, and the owner enters it anew in
// one of them. The other, which has not noticed, brings the end of its own holds closer:
// the new life of the lock is not its own, however well the numbers agree.
func TestALostHoldDoesNotCutTheOwnersNextLife(t *testing.T) {
	const long, short = rlock.DefaultLease * 2, 15 * time.Second
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sa, sb := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		for _, c := range []struct {
			name   string
			again  bool // the session that lost it takes it again, in the new life
			cut    func(ctx context.Context, first, again *rlock.Hold) error
			isLost bool
		}{
			{"extends", false, func(ctx context.Context, h, _ *rlock.Hold) error { return h.Extend(ctx, short) }, true},
			{"extends one of two", true, func(ctx context.Context, h, _ *rlock.Hold) error { return h.Extend(ctx, short) }, false},
			{"unlocks one of two", true, func(_ context.Context, _, again *rlock.Hold) error { return again.Unlock() }, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				a, b := rlock.New(sa, c.name), rlock.New(sb, c.name)
				ctx := within(t, 20*time.Second)
				section, h, err := a.Lock(rlock.WithOwner(ctx, "me"), rlock.Lease(short+time.Second))
				must(t, err)
				must(t, s.Do(t, "DEL", c.name).Error())
				_, there, err := b.Lock(rlock.WithOwner(ctx, "me"), rlock.Lease(long))
				must(t, err)
				var again *rlock.Hold
				if c.again {
					_, again, err = a.Lock(section, rlock.Lease(short+time.Second))
					must(t, err)
				}
				if err := c.cut(ctx, h, again); errors.Is(err, rlock.ErrLost) != c.isLost || !c.isLost && err != nil {
					t.Errorf("it returned %v", err)
				}
				if n, _ := s.Do(t, "PTTL", c.name).AsInt64(); time.Duration(n)*time.Millisecond < there.Remaining() {
					t.Errorf("the lock lives for %d ms, and the session that holds it trusts it for %v", n, there.Remaining())
				}
				if n := locktest.Field(t, s, c.name, h.Owner()); n == "" || n == "0" {
					t.Errorf("the owner has %q holds", n)
				}
				must(t, there.Unlock())
			})
		}
	})
}

// Nothing else keeps an end from moving closer: the holds that were taken by id in an
// earlier life, by whomever, do not count.
func TestExtendMovesTheEndCloser(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rlock.New(dial(t, s, rlock.Config{}), "x"), rlock.New(dial(t, s, rlock.Config{}), "x")
		ctx := within(t, 20*time.Second)
		_, gone, err := b.Lock(rlock.WithOwner(ctx, "somebody"))
		must(t, err)
		must(t, s.Do(t, "DEL", "x").Error())
		for _, c := range []struct {
			name string
			ctx  context.Context
		}{{"an owner of its own", ctx}, {"a named one", rlock.WithOwner(ctx, "me")}} {
			section, h, err := a.Lock(c.ctx, rlock.Lease(time.Minute))
			must(t, err)
			end := func(what string, h *rlock.Hold) {
				t.Helper()
				must(t, h.Extend(ctx, 5*time.Second))
				if n, _ := s.Do(t, "PTTL", "x").AsInt64(); n > 5000 {
					t.Errorf("%s, %s: the lock lives for %d ms", c.name, what, n)
				}
			}
			end("alone", h)
			_, inner, err := a.Lock(section, rlock.Lease(5*time.Second))
			must(t, err)
			must(t, h.Extend(ctx, time.Minute))
			end("with an inner hold", h)
			must(t, inner.Extend(ctx, time.Minute))
			must(t, inner.Unlock())
			if n, _ := s.Do(t, "PTTL", "x").AsInt64(); n > 5000 {
				t.Errorf("%s: without the inner hold the lock lives for %d ms", c.name, n)
			}
			must(t, h.Unlock())
		}
		if err := gone.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of the hold that was deleted: %v", err)
		}
	})
}
