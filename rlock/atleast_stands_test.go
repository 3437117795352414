package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A hold that is abandoned leaves the lock to its lease. A lock that is to stand for longer does so all the same, whichever of
// its holds is abandoned, and also through Close.
func TestAtLeastOutlivesAnAbandonedHold(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, ses *rlock.Session, outer, inner *rlock.Hold){
		"the inner one": func(t *testing.T, _ *rlock.Session, outer, inner *rlock.Hold) {
			must(t, inner.Abandon())
			must(t, outer.Unlock())
		},
		"the outer one": func(t *testing.T, _ *rlock.Session, outer, inner *rlock.Hold) {
			must(t, outer.Abandon())
			must(t, inner.Unlock())
		},
		"the last one": func(t *testing.T, _ *rlock.Session, outer, inner *rlock.Hold) {
			must(t, inner.Unlock())
			must(t, outer.Abandon())
		},
		"the inner one, and the session closes": func(t *testing.T, ses *rlock.Session, _, inner *rlock.Hold) {
			must(t, inner.Abandon())
			must(t, ses.Close())
		},
	} {
		t.Run(what, func(t *testing.T) {
			eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex) {
				section, outer, err := m.Lock(ctx, rlock.AtLeast(time.Hour))
				must(t, err)
				_, inner, err := m.Lock(section)
				must(t, err)
				leave(t, ses, outer, inner)
				locktest.Get(t, section.Done(), 10*time.Second, "the end of the section")
				must(t, ses.Close()) // it waits for what goes on in the background
				if left := locktest.PTTL(t, s, "x"); left < 59*time.Minute || left > time.Hour {
					t.Errorf("the lock stands for %v yet, want an hour", left)
				}
				_, _, err = elsewhere.TryLock(ctx)
				locktest.Is(t, "TryLock elsewhere", err, rlock.ErrNotAcquired)
			})
		})
	}
}

// An extension to a sooner end ends the hold, and not the time for which the lock is to stand.
func TestAtLeastOutlivesAnExtension(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, _ *rlock.Session, m, elsewhere locktest.Mutex) {
		section, h, err := m.Lock(ctx, rlock.Lease(time.Hour), rlock.AtLeast(30*time.Minute))
		must(t, err)
		must(t, h.Extend(ctx, 200*time.Millisecond))
		locktest.Ends(t, section, 10*time.Second, rlock.ErrLost)
		if left := locktest.PTTL(t, s, "x"); left < 29*time.Minute || left > 30*time.Minute {
			t.Errorf("the lock stands for %v yet, want half an hour", left)
		}
		_, _, err = elsewhere.TryLock(ctx)
		locktest.Is(t, "TryLock elsewhere", err, rlock.ErrNotAcquired)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

// Inner holds end with their Unlock, also while the lock is to stand: they are not collected until then.
func TestAtLeastCollectsNoInnerHolds(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, _ *rlock.Session, m, elsewhere locktest.Mutex) {
		section, outer, err := m.Lock(ctx, rlock.AtLeast(time.Hour))
		must(t, err)
		for range 10 {
			_, inner, err := m.Lock(section)
			must(t, err)
			must(t, inner.Unlock())
		}
		for owner, n := range ownersOf(t, ctx, m) {
			if n != 1 {
				t.Errorf("%s has %d holds, want one", owner, n)
			}
		}
		_, inner, err := m.Lock(section)
		must(t, err)
		must(t, outer.Unlock())
		must(t, inner.Unlock())
		if left := locktest.PTTL(t, s, "x"); left < 59*time.Minute || left > time.Hour {
			t.Errorf("the lock stands for %v yet, want an hour", left)
		}
		_, _, err = elsewhere.TryLock(ctx)
		locktest.Is(t, "TryLock elsewhere", err, rlock.ErrNotAcquired)
	})
}

// ownersOf returns the owners of a lock and how many holds Redis counts for each.
func ownersOf(t *testing.T, ctx context.Context, m locktest.Mutex) map[string]int {
	t.Helper()
	var owners map[string]int
	switch m := m.(type) {
	case *rlock.Mutex:
		st, err := m.State(ctx)
		must(t, err)
		owners = st.Owners
	case *fairlock.Mutex:
		st, err := m.State(ctx)
		must(t, err)
		owners = st.Owners
	case *rwlock.RWMutex:
		st, err := m.State(ctx)
		must(t, err)
		owners = st.Owners
	}
	if len(owners) != 1 {
		t.Errorf("the owners are %v", owners)
	}
	return owners
}
