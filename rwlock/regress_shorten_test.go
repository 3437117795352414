package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// What one session shortens must not reach what another holds under the same owner, nor
// what Redisson's readers hold.
func TestShorteningSparesOthers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 60*time.Second), "me")
		score := func() time.Duration {
			f, err := s.Do(t, "ZSCORE", "relock_readers:{x}", "me").AsFloat64()
			if err != nil {
				return 0
			}
			return time.Until(time.UnixMilli(int64(f)))
		}
		stands := func(what string, r *rlock.Hold) {
			t.Helper()
			if got := pttl(t, s, "x"); got < r.Remaining() {
				t.Errorf("%s: the lock lives %v, the other session trusts it for %v", what, got, r.Remaining())
			}
			if got := score(); got > 0 && got < r.Remaining() {
				t.Errorf("%s: the reader lives %v, the other session trusts it for %v", what, got, r.Remaining())
			}
		}
		for _, lock := range []func(*rwlock.RWMutex) lockFunc{
			func(m *rwlock.RWMutex) lockFunc { return m.RLock }, func(m *rwlock.RWMutex) lockFunc { return m.Lock }} {
			_, other := hold(t, ctx, lock(b), rlock.Lease(time.Minute))
			_, h1 := hold(t, ctx, lock(a), rlock.Lease(5*time.Second))
			_, h2 := hold(t, ctx, lock(a), rlock.Lease(5*time.Second))
			must(t, h2.Unlock())
			stands("unlock", other)
			must(t, h1.Extend(ctx, 2*time.Second))
			stands("extend", other)
			must(t, h1.Unlock())
			stands("last unlock", other)
			must(t, other.Unlock())
			s.FlushAll(t)
		}
		// A read hold of another session under a write side that is cut.
		_, w := hold(t, ctx, a.Lock, rlock.Lease(5*time.Second))
		_, r := hold(t, ctx, b.RLock, rlock.Lease(time.Minute))
		must(t, w.Extend(ctx, 2*time.Second))
		stands("extend of a write side", r)
		must(t, w.Unlock())
		stands("downgrade", r)
		must(t, r.Unlock())
		s.FlushAll(t)
		// Redisson's reader.
		j := newJava(t, s, "x", 7)
		j.wants(javaReadLock, 30*time.Second, "nil")
		_, r1 := hold(t, ctx, a.RLock, rlock.Lease(5*time.Second))
		_, r2 := hold(t, ctx, a.RLock, rlock.Lease(5*time.Second))
		must(t, r2.Unlock())
		must(t, r1.Extend(ctx, 2*time.Second))
		if got := pttl(t, s, "x"); got < 25*time.Second {
			t.Errorf("Redisson's lease of 30s is cut to %v", got)
		}
		must(t, r1.Unlock())
		s.FlushAll(t)
		// A timeout key does not outlive what is left.
		_, r1 = hold(t, ctx, a.RLock, rlock.Lease(time.Minute))
		_, r2 = hold(t, ctx, a.RLock, rlock.Lease(5*time.Second))
		must(t, r1.Unlock())
		if got := pttl(t, s, "{x}:me:rwlock_timeout:1"); got > 5*time.Second {
			t.Errorf("the timeout key lives for %v, the hold for 5s", got)
		}
		must(t, r2.Unlock())
	})
}
