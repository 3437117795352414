package rwlock_test

import (
	"context"
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
		for _, c := range []locktest.NoLock{
			{Name: "a field that is no count", Hash: "name bob", TTL: "60000", Want: "no count"},
			{Name: "several fields", Hash: "name bob age 41", TTL: "60000", Want: "several fields"},
			{Name: "a reader without a TTL", Hash: "mode read java:1 1", TTL: "", Want: "no TTL"},
			{Name: "a writer without a TTL", Hash: "mode write java:1:write 1", TTL: "", Want: "no TTL"},
		} {
			t.Run(c.Name, func(t *testing.T) {
				m := rwlock.New(ses, "x")
				named := rlock.WithOwner(ctx, "me")
				c.Check(t, s, map[string]func() error{
					"RLock":         func() error { _, _, err := m.RLock(ctx); return err },
					"RLock by name": func() error { _, _, err := m.RLock(named); return err },
					"TryRLock":      func() error { _, _, err := m.TryRLock(ctx); return err },
					"Lock":          func() error { _, _, err := m.Lock(ctx); return err },
					"Lock by name":  func() error { _, _, err := m.Lock(named); return err },
					"TryLock":       func() error { _, _, err := m.TryLock(ctx); return err },
					"State":         func() error { _, err := m.State(ctx); return err },
					"ForceUnlock":   func() error { _, err := m.ForceUnlock(ctx); return err },
				})
			})
		}
	})
}

// One who waits for a lock is told when the key becomes a hash that is no lock.
func TestAWaiterIsToldOfAHashThatIsNoLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, other := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 20*time.Second)
		_, h := hold(t, ctx, m.Lock, rlock.Lease(time.Second))
		c := goLock(context.WithoutCancel(ctx), other.RLock)
		redistest.Eventually(t, 5*time.Second, "the waiter to listen", func() bool { return slices.Contains(s.Channels(t), "redisson_rwlock:{x}") })
		// In one step, or the waiter could find the lock free.
		const become = `redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], 'name', 'bob')`
		must(t, s.Do(t, "EVAL", become, "1", "x").Error())
		if l := locktest.Get(t, c, 10*time.Second, "RLock"); l.err == nil || !strings.Contains(l.err.Error(), "is no lock") {
			t.Errorf("RLock: %v", l.err)
		}
		is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}
