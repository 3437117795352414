package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A writer with AtLeast that has become a reader lets other readers in when the time is over, however long it reads.
func TestADowngradedWriterLetsReadersInWhenAtLeastIsOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, d := within(t, time.Minute), s.Slowed(time.Second)
		m, elsewhere := rwlock.New(dial(t, s, rlock.Config{}), "x"), rwlock.New(dial(t, s, rlock.Config{}), "x")
		section, w, err := m.Lock(ctx, rlock.AtLeast(d))
		must(t, err)
		began := time.Now()
		_, r, err := m.RLock(section)
		must(t, err)
		must(t, w.Unlock())
		_, _, err = elsewhere.TryRLock(ctx)
		is(t, "TryRLock before the time is over", err, rlock.ErrNotAcquired)
		_, other, err := elsewhere.RLock(ctx, rlock.Wait(20*time.Second))
		must(t, err)
		if took := time.Since(began); took < d {
			t.Errorf("a reader is in after %v, want %v", took, d)
		}
		if section.Err() != nil {
			t.Error("the section has ended")
		}
		_, _, err = elsewhere.TryLock(ctx)
		is(t, "TryLock beside readers", err, rlock.ErrNotAcquired)
		must(t, other.Unlock())
		must(t, r.Unlock())
		_, w, err = elsewhere.TryLock(ctx)
		must(t, err)
		must(t, w.Unlock())
	})
}

// A write hold that was abandoned keeps readers out for its lease, also if read holds of its section are unlocked.
func TestAnAbandonedWriteHoldKeepsReadersOut(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m, elsewhere := rwlock.New(dial(t, s, rlock.Config{}), "x"), rwlock.New(dial(t, s, rlock.Config{}), "x")
		section, w, err := m.Lock(ctx, rlock.Lease(time.Hour))
		must(t, err)
		_, one, err := m.RLock(section)
		must(t, err)
		_, two, err := m.RLock(section)
		must(t, err)
		must(t, w.Abandon())
		for what, h := range map[string]*rlock.Hold{"a read hold is unlocked": one, "so is the other": two} {
			must(t, h.Unlock())
			_, _, err = elsewhere.TryRLock(ctx)
			is(t, "TryRLock when "+what, err, rlock.ErrNotAcquired)
		}
		if left := locktest.PTTL(t, s, "x"); left < 59*time.Minute {
			t.Errorf("the lock stands for %v yet, want an hour", left)
		}
	})
}

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
