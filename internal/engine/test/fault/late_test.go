package fault_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// lateExtends are what a network may do to an Extend whose first copy arrives late.
var lateExtends = []struct {
	name string
	// extend has p fail the Extend to six seconds, and returns its first copy.
	extend func(t *testing.T, p *faulttest.Proxy, h *rlock.Hold) *locktest.Late
}{
	{"resent", func(t *testing.T, p *faulttest.Proxy, h *rlock.Hold) *locktest.Late {
		late := locktest.DropLate(p, locktest.Calls(t, "extend"), nil)
		must(t, h.Extend(within(t, 20*time.Second), 6*time.Second))
		return late
	}},
	{"given up", func(t *testing.T, p *faulttest.Proxy, h *rlock.Hold) *locktest.Late {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		late := locktest.DropLate(p, locktest.Calls(t, "extend"), cancel)
		locktest.Is(t, "Extend", h.Extend(ctx, 6*time.Second), context.Canceled)
		return late
	}},
}

// An Extend that arrives late must not cut a lock that is trusted for longer by then (11.2).
func TestALateExtendDoesNotCutALaterOne(t *testing.T) {
	t.Parallel()
	for _, c := range lateExtends {
		for owner, named := range map[string]string{"private": "", "named": "order-17"} {
			t.Run(c.name+"/"+owner, func(t *testing.T) {
				redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
					ses, p := locktest.DialProxy(t, s, rlock.Config{})
					name, ctx := redistest.Name(t), within(t, 30*time.Second)
					if named != "" {
						ctx = rlock.WithOwner(ctx, named)
					}
					_, h, err := rlock.New(ses, name).Lock(ctx, rlock.Lease(10*time.Second))
					must(t, err)
					late := c.extend(t, p, h)
					must(t, h.Extend(ctx, 20*time.Second))
					late.Arrive(t, s)
					lateTrusted(t, s, name, h)
					must(t, h.Unlock())
					if keys := s.Keys(t); len(keys) != 0 {
						t.Errorf("after the Unlock Redis has %v", keys)
					}
				})
			})
		}
	}
}

// An older extension changes nothing in the other direction either.
func TestALateExtendDoesNotLengthenALaterOne(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		name, ctx := redistest.Name(t), within(t, 30*time.Second)
		_, h, err := rlock.New(ses, name).Lock(ctx, rlock.Lease(10*time.Second))
		must(t, err)
		late := locktest.DropLate(p, locktest.Calls(t, "extend"), nil)
		must(t, h.Extend(ctx, time.Hour))
		must(t, h.Extend(ctx, 5*time.Second))
		late.Arrive(t, s)
		if ms, err := s.Do(t, "PTTL", name).AsInt64(); err != nil || ms > 5000 {
			t.Errorf("the lock lives for %d ms, %v; want 5000 at most", ms, err)
		}
		must(t, h.Unlock())
	})
}

// A nested Lock that is renewed has the lock trusted for longer too.
func TestALateExtendDoesNotCutANestedHold(t *testing.T) {
	t.Parallel()
	for _, c := range lateExtends {
		t.Run(c.name, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				ses, p := locktest.DialProxy(t, s, rlock.Config{})
				name, ctx := redistest.Name(t), within(t, 30*time.Second)
				m := rlock.New(ses, name)
				section, h, err := m.Lock(ctx, rlock.Lease(10*time.Second))
				must(t, err)
				late := c.extend(t, p, h)
				_, inner, err := m.Lock(section)
				must(t, err)
				late.Arrive(t, s)
				lateTrusted(t, s, name, inner)
				must(t, inner.Unlock())
				must(t, h.Unlock())
			})
		})
	}
}

// An inner Unlock brings the end closer to what the outer hold deserves. Made up for later, or
// arriving late, it must not cut what the outer hold was given meanwhile.
func TestALateInnerUnlockDoesNotCutALaterExtend(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: time.Second})
		name, ctx := redistest.Name(t), within(t, 30*time.Second)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(ctx, rlock.Lease(5*time.Second))
		must(t, err)
		_, inner, err := m.Lock(section)
		must(t, err)
		var extended atomic.Bool
		release := locktest.Calls(t, "release")
		lost := func(cmd []string) bool { return !extended.Load() && release(cmd) }
		late := locktest.DropLate(p, lost, nil)
		for range 100 {
			p.DropRequest(lost)
		}
		faultNoSentinel(t, "inner Unlock", inner.Unlock())
		must(t, h.Extend(ctx, 20*time.Second))
		late.Arrive(t, s)
		lateTrusted(t, s, name, h)
		extended.Store(true)
		redistest.Eventually(t, 5*time.Second, "the inner hold is gone", func() bool { return locktest.Field(t, s, name, h.Owner()) == "1" })
		lateTrusted(t, s, name, h)
		must(t, h.Unlock())
	})
}

// lateTrusted checks that the lock lives for as long as the hold is trusted.
func lateTrusted(t *testing.T, s *redistest.Server, name string, h *rlock.Hold) {
	t.Helper()
	ms, err := s.Do(t, "PTTL", name).AsInt64()
	if trusted := h.Remaining(); err != nil || time.Duration(ms)*time.Millisecond < trusted || trusted < 15*time.Second {
		t.Errorf("the lock lives for %d ms, %v, and the hold is trusted for %v", ms, err, trusted)
	}
}

// A ForceUnlock that arrives late leaves the next owner alone.
func TestALateForceUnlockLeavesTheNextOwner(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		operator, p := locktest.DialProxy(t, s, rlock.Config{})
		ses := dial(t, s, rlock.Config{})
		name, ctx := redistest.Name(t), within(t, 30*time.Second)
		m := rlock.New(ses, name)
		_, stuck, err := m.Lock(ctx)
		must(t, err)
		force := locktest.Calls(t, "force_unlock")
		late := locktest.DropLate(p, func(cmd []string) bool { return force(cmd) && slices.Contains(cmd, stuck.Owner()) }, nil)
		if found, err := rlock.New(operator, name).ForceUnlock(ctx); err != nil || !found {
			t.Fatalf("ForceUnlock: %v, %v", found, err)
		}
		section, next, err := m.Lock(ctx)
		must(t, err)
		late.Arrive(t, s)
		if n := locktest.Field(t, s, name, next.Owner()); n != "1" || section.Err() != nil {
			t.Errorf("the next owner's count is %q, its section's end %v", n, section.Err())
		}
		must(t, next.Unlock())
	})
}

// A ForceUnlock runs twice, and the same owner name has the lock again by then, in another session: the new
// hold stays. (Scenario 30)
func TestAForceUnlockThatRunsTwiceLeavesTheSameOwnersNextHold(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		operator, p := locktest.DialProxy(t, s, rlock.Config{})
		name := redistest.Name(t)
		locktest.Forced{
			First: rlock.New(dial(t, s, rlock.Config{}), name).Lock,
			Next:  rlock.New(dial(t, s, rlock.Config{}), name).Lock,
			Force: rlock.New(operator, name).ForceUnlock, Proxy: p, Runs: locktest.Calls(t, "force_unlock"),
		}.StaysTheNext(t, s)
	})
}
