package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A nested read hold is counted in memory, so that Redis has not heard of its lease. When it is abandoned,
// what is left standing is the lease that Redis has: an Extend of another hold does not make it longer.
func TestAnAbandonedHoldInMemoryDoesNotLengthenTheLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(locktest.Dial(t, s, rlock.Config{Lease: 30 * time.Second}), "x")
		section, outer := hold(t, t.Context(), m.RLock)
		_, long := hold(t, section, m.RLock, rlock.Lease(time.Hour))
		_, longer := hold(t, section, m.RLock, rlock.Lease(2*time.Hour))
		_, short := hold(t, section, m.RLock, rlock.Lease(time.Minute))
		must(t, long.Abandon())
		must(t, longer.Abandon())
		must(t, short.Extend(t.Context(), 2*time.Minute))
		if ttl, err := s.Do(t, "PTTL", "x").AsInt64(); err != nil || ttl < 110_000 || ttl > 121_000 {
			t.Errorf("the lock's TTL is %d ms, %v; want that of the extension, 2 min", ttl, err)
		}
		must(t, short.Unlock())
		must(t, outer.Unlock())
		if ttl, err := s.Do(t, "PTTL", "x").AsInt64(); err != nil || ttl <= 0 || ttl > 121_000 {
			t.Errorf("the lock's TTL is %d ms, %v; it is to be left standing", ttl, err)
		}
	})
}

// A writer with a long lease takes read holds with shorter ones, so that Redisson may cut the lease. When the
// write hold is abandoned the lock stands for as long as that was promised, whatever becomes of the others.
func TestAnAbandonedWriteHoldStandsBehindShorterReadHolds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(locktest.Dial(t, s, rlock.Config{Lease: 30 * time.Second}), "x")
		section, w := hold(t, t.Context(), m.Lock, rlock.Lease(time.Hour))
		_, short := hold(t, section, m.RLock, rlock.Lease(time.Minute))
		_, renewed := hold(t, section, m.RLock)
		must(t, w.Abandon())
		stands := func(behind string) {
			t.Helper()
			if ttl, err := s.Do(t, "PTTL", "x").AsInt64(); err != nil || ttl < 3_590_000 || ttl > 3_601_000 {
				t.Errorf("behind %s the lock's TTL is %d ms, %v; want an hour", behind, ttl, err)
			}
		}
		must(t, renewed.Unlock())
		stands("the Unlock of a read hold")
		must(t, short.Extend(t.Context(), 3*time.Minute))
		stands("the extension of the other one")
		must(t, short.Unlock())
		stands("the last Unlock")
	})
}
