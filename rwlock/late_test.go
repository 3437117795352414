package rwlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A command that brings the end of a hold closer, and arrives late, must not cut what is
// trusted for longer by then: after a later Extend, and inside a nested hold that is renewed.
func TestALateExtendDoesNotCutWhatIsTrusted(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"", "me"} {
		t.Run("owner="+owner, func(t *testing.T) {
			sides(t, func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc, _, _ string) {
				ses, p := locktest.DialProxy(t, s, slow)
				m := rwlock.New(ses, "x")
				base := within(t, 30*time.Second)
				if owner != "" {
					base = rlock.WithOwner(base, owner)
				}
				for _, giveUp := range []bool{false, true} {
					extend := func(h *rlock.Hold) *locktest.Late {
						t.Helper()
						ctx, cancel := context.WithCancel(base)
						defer cancel()
						if !giveUp {
							late := locktest.DropLate(p, calls("extend"), nil)
							must(t, h.Extend(ctx, 6*time.Second))
							return late
						}
						late := locktest.DropLate(p, calls("extend"), cancel)
						is(t, "Extend", h.Extend(ctx, 6*time.Second), context.Canceled)
						return late
					}
					section, h := hold(t, base, side(m), rlock.Lease(10*time.Second))
					late := extend(h)
					must(t, h.Extend(base, 20*time.Second))
					late.Arrive(t, s)
					trusted(t, s, h)

					late = extend(h)
					_, inner := hold(t, section, side(m))
					late.Arrive(t, s)
					trusted(t, s, inner)
					must(t, inner.Unlock())
					must(t, h.Unlock())
					nothingLeft(t, s)
				}
			})
		})
	}
}

// trusted checks that the lock lives for as long as the hold is trusted, and a reader too.
func trusted(t *testing.T, s *redistest.Server, h *rlock.Hold) {
	t.Helper()
	left := h.Remaining()
	ms, err := s.Do(t, "PTTL", "x").AsInt64()
	if err != nil || left < 15*time.Second || time.Duration(ms)*time.Millisecond < left-rounding {
		t.Errorf("the lock lives for %d ms, %v, and the hold is trusted for %v", ms, err, left)
	}
	if score, err := s.Do(t, "ZSCORE", "relock_readers:{x}", h.Owner()).AsFloat64(); err == nil {
		if until := time.UnixMilli(int64(score)); time.Until(until) < left-rounding {
			t.Errorf("the reader lives until %v, and is trusted for %v", until, left)
		}
	}
}

// A ForceUnlock that arrives late leaves the next owners alone.
func TestALateForceUnlockLeavesTheNextOwners(t *testing.T) {
	sides(t, func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc, _, _ string) {
		operator, p := locktest.DialProxy(t, s, slow)
		m, ctx := rwlock.New(dial(t, s, slow), "x"), within(t, 30*time.Second)
		_, stuck := hold(t, ctx, side(m))
		force := calls("force_unlock")
		late := locktest.DropLate(p, func(cmd []string) bool { return force(cmd) && slices.Contains(cmd, stuck.Owner()) }, nil)
		if found, err := rwlock.New(operator, "x").ForceUnlock(ctx); err != nil || !found {
			t.Fatalf("ForceUnlock: %v, %v", found, err)
		}
		section, next := hold(t, ctx, side(m))
		late.Arrive(t, s)
		if st, err := m.State(ctx); err != nil || st.Owners[next.Owner()] != 1 || section.Err() != nil {
			t.Errorf("Redis has %v, %v; the section's end is %v", st.Owners, err, section.Err())
		}
		must(t, next.Unlock())
		is(t, "Unlock of the hold that was forced", stuck.Unlock(), rlock.ErrLost)
	})
}

// A ForceUnlock runs twice, and the same owner name has a hold again by then, in another session: the new
// hold stays. (Scenario 30)
func TestAForceUnlockThatRunsTwiceLeavesTheSameOwnersNextHold(t *testing.T) {
	sides(t, func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc, _, _ string) {
		operator, p := locktest.DialProxy(t, s, slow)
		locktest.Forced{
			First: side(rwlock.New(dial(t, s, slow), "x")),
			Next:  side(rwlock.New(dial(t, s, slow), "x")),
			Force: rwlock.New(operator, "x").ForceUnlock, Proxy: p, Runs: calls("force_unlock"),
		}.StaysTheNext(t, s)
	})
}
