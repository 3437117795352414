package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A read hold that is unlocked leaves the lock to the shorter leases of those that stay, but for what is to stand for longer.
func TestAtLeastOutlivesShorterReadHolds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m := rwlock.New(dial(t, s, rlock.Config{Lease: time.Hour}), "x")
		section, w, err := m.Lock(ctx, rlock.AtLeast(50*time.Minute))
		must(t, err)
		_, one, err := m.RLock(section, rlock.Lease(time.Minute))
		must(t, err)
		_, two, err := m.RLock(section, rlock.Lease(time.Minute))
		must(t, err)
		must(t, w.Unlock())
		must(t, one.Unlock())
		if left := locktest.PTTL(t, s, "x"); left < 49*time.Minute {
			t.Errorf("the lock stands for %v yet, want 50 minutes", left)
		}
		must(t, two.Unlock())
	})
}
