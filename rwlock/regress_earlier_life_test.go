package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A reader of ours that was in an earlier life of the lock, and cannot ask any more, makes readers of
// ours as many as there are in the hash, although one there is Java's. The lease of that one stays.
func TestReadersOfAnEarlierLifeCutNoLease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		m := rwlock.New(dial(t, s, rlock.Config{HandOverLimit: -1}), "x") // each reader has a claim of its own
		stays := func(what string) {
			t.Helper()
			if got := pttl(t, s, "x"); got < 9*time.Minute {
				t.Errorf("%s: the lock lives for %v, Java's reader for 10m", what, got)
			}
		}
		_, gone := hold(t, ctx, m.RLock, rlock.Lease(10*time.Second))
		must(t, gone.Abandon()) // as that of a process that died
		must(t, s.Do(t, "DEL", "x").Error())
		j := newJava(t, s, "x", 7)
		j.wants(javaReadLock, 10*time.Minute, "nil")
		_, r := hold(t, ctx, m.RLock, rlock.Lease(time.Minute))
		must(t, r.Extend(ctx, 20*time.Second))
		stays("after Extend")
		_, other := hold(t, ctx, m.RLock)
		must(t, r.Unlock())
		stays("after Unlock")
		must(t, other.Unlock())
		stays("after the last Unlock")
		refused(t, ctx, m.TryLock, "a writer beside Java's reader")
		j.wants(javaReadUnlock, 30*time.Second, "1")
	})
}

// The lock lives no longer than the last reader where all are ours.
func TestALockEndsWithTheLastOfOurReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		m := rwlock.New(dial(t, s, rlock.Config{HandOverLimit: -1}), "x")
		hold(t, ctx, m.RLock, rlock.Lease(10*time.Second))
		_, r := hold(t, ctx, m.RLock, rlock.Lease(10*time.Minute))
		_, long := hold(t, ctx, m.RLock, rlock.Lease(10*time.Minute))
		must(t, r.Extend(ctx, 20*time.Second))
		must(t, long.Unlock())
		if got := pttl(t, s, "x"); got > 21*time.Second {
			t.Errorf("after Unlock the lock lives for %v, its last reader for 20s", got)
		}
		must(t, r.Extend(ctx, 10*time.Second))
		if got := pttl(t, s, "x"); got > 11*time.Second {
			t.Errorf("after Extend the lock lives for %v, its last reader for 10s", got)
		}
	})
}

// It does so among a hundred readers too.
func TestALockEndsWithTheLastOfManyReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		m := rwlock.New(dial(t, s, rlock.Config{HandOverLimit: -1}), "x")
		_, long := hold(t, ctx, m.RLock, rlock.Lease(10*time.Minute))
		for range 100 {
			hold(t, ctx, m.RLock, rlock.Lease(10*time.Second))
		}
		must(t, long.Unlock())
		if got := pttl(t, s, "x"); got > 11*time.Second {
			t.Errorf("the lock lives for %v, its last reader for 10s", got)
		}
	})
}
