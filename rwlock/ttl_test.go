package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Every key of a lock has a TTL at every step, none shorter than the lock's own life needs,
// and a clock that is wrong on the client's side plays no part: only the server's is asked
// for (R21).
func TestEveryKeyHasATTL(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rwlock.New(dial(t, s, rlock.Config{Lease: 20 * time.Second, PollFloor: time.Minute}), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		check := func(step string, keys int, least time.Duration) {
			t.Helper()
			all := s.Keys(t)
			if len(all) != keys {
				t.Errorf("%s: keys %q, want %d", step, all, keys)
			}
			for _, key := range all {
				if got := pttl(t, s, key); got < least-time.Second || got > 10*time.Minute {
					t.Errorf("%s: %s lives for %v, want at least %v", step, key, got, least)
				}
			}
		}
		section, w := hold(t, ctx, a.Lock)
		check("write", 1, 20*time.Second)
		_, r := hold(t, section, a.RLock, rlock.Lease(time.Minute))
		check("read under it", 4, time.Minute)
		must(t, w.Unlock())
		check("downgraded", 4, time.Minute)
		_, other := hold(t, ctx, b.RLock, rlock.Lease(2*time.Minute))
		check("another reader", 5, time.Minute)
		waiting := goLock(ctx, b.Lock)
		redistest.Eventually(t, 5*time.Second, "the writer's mark", func() bool { return writersWaiting(t, s, "x") == 1 })
		check("a waiting writer", 6, time.Minute)
		must(t, other.Unlock())
		must(t, r.Unlock())
		must(t, in(t, waiting, 5*time.Second, "the writer").hold.Unlock())
		nothingLeft(t, s)

		section, w = hold(t, ctx, a.Lock, rlock.Lease(time.Minute))
		_, r = hold(t, section, a.RLock, rlock.Lease(2*time.Minute))
		must(t, w.Extend(ctx, 10*time.Second))
		check("a write side that ends before the read side", 4, 2*time.Minute)
		must(t, w.Unlock())
		must(t, r.Unlock())
		nothingLeft(t, s) // the gate for readers is over in 6 ms
	})
}
