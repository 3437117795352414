package rwlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A hash that is no lock, under the name of a read-write lock: every operation says so at once,
// and what is wrong with it, and leaves it as it is.
func TestAHashThatIsNoLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, slow), within(t, 20*time.Second)
		for _, c := range []struct{ name, hash, ttl, want string }{
			{"a field that is no count", "name bob", "60000", "no count"},
			{"several fields", "name bob age 41", "60000", "several fields"},
			{"a reader without a TTL", "mode read java:1 1", "", "no TTL"},
			{"a writer without a TTL", "mode write java:1:write 1", "", "no TTL"},
		} {
			t.Run(c.name, func(t *testing.T) {
				s.FlushAll(t)
				for _, cmd := range locktest.Setup("HSET x "+c.hash, "PEXPIRE x "+c.ttl)[:1+min(1, len(c.ttl))] {
					must(t, s.Do(t, cmd...).Error())
				}
				before := locktest.Describe(t, s)
				m := rwlock.New(ses, "x")
				named := rlock.WithOwner(ctx, "me")
				for what, op := range map[string]func() error{
					"RLock":         func() error { _, _, err := m.RLock(ctx); return err },
					"RLock by name": func() error { _, _, err := m.RLock(named); return err },
					"TryRLock":      func() error { _, _, err := m.TryRLock(ctx); return err },
					"Lock":          func() error { _, _, err := m.Lock(ctx); return err },
					"Lock by name":  func() error { _, _, err := m.Lock(named); return err },
					"TryLock":       func() error { _, _, err := m.TryLock(ctx); return err },
					"State":         func() error { _, err := m.State(ctx); return err },
					"ForceUnlock":   func() error { _, err := m.ForceUnlock(ctx); return err },
				} {
					err := op()
					if err == nil || errors.Is(err, rlock.ErrNotAcquired) || !strings.Contains(err.Error(), "is no lock") || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%s: %v, want an error that tells of %q", what, err, c.want)
					}
				}
				if after := locktest.Describe(t, s); after != before {
					t.Errorf("Redis has %q, and had %q", after, before)
				}
			})
		}
	})
}

// One who waits for a lock is told when the key becomes a hash that is no lock.
func TestAWaiterIsToldOfAHashThatIsNoLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m, other := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 20*time.Second)
		_, h := hold(t, ctx, m.Lock, rlock.Lease(time.Second))
		c := goLock(context.WithoutCancel(ctx), other.RLock)
		redistest.Eventually(t, 5*time.Second, "the waiter to listen", func() bool { return slices.Contains(s.Channels(t), "redisson_rwlock:{x}") })
		must(t, s.Do(t, "DEL", "x").Error())
		must(t, s.Do(t, "HSET", "x", "name", "bob").Error())
		if l := locktest.Get(t, c, 10*time.Second, "RLock"); l.err == nil || !strings.Contains(l.err.Error(), "is no lock") {
			t.Errorf("RLock: %v", l.err)
		}
		is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}
