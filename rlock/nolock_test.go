package rlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A hash that is no lock, under the name of one: every operation says so at once, and what is
// wrong with it, and leaves it as it is.
func TestAHashThatIsNoLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, rlock.Config{}), within(t, 20*time.Second)
		for _, c := range []locktest.NoLock{
			{Name: "a field that is no count", Hash: "name bob", TTL: "60000", Want: "no count"},
			{Name: "a count below one", Hash: "java:1 0", TTL: "60000", Want: "no count"},
			{Name: "several fields", Hash: "name 1 age 41", TTL: "60000", Want: "several fields"},
			{Name: "an owner without a TTL", Hash: "java:1 1", TTL: "", Want: "no TTL"},
		} {
			t.Run(c.Name, func(t *testing.T) {
				m, fenced := rlock.New(ses, "x"), rlock.New(ses, "x", rlock.Fenced())
				named := rlock.WithOwner(ctx, "me")
				c.Check(t, s, map[string]func() error{
					"Lock":         func() error { _, _, err := m.Lock(ctx); return err },
					"Lock by name": func() error { _, _, err := m.Lock(named); return err },
					"fenced Lock":  func() error { _, _, err := fenced.Lock(ctx); return err },
					"TryLock":      func() error { _, _, err := m.TryLock(ctx); return err },
					"State":        func() error { _, err := m.State(ctx); return err },
					"ForceUnlock":  func() error { _, err := m.ForceUnlock(ctx); return err },
				})
			})
		}
	})
}

// The holder of a lock that has lost its TTL keeps it, and gives it a TTL when it renews.
func TestALostTTLIsMended(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		name, ctx := redistest.Name(t), within(t, 20*time.Second)
		section, h, err := rlock.New(dial(t, s, rlock.Config{Lease: 4 * time.Second}), name).Lock(ctx)
		must(t, err)
		must(t, s.Do(t, "PERSIST", name).Error())
		redistest.Eventually(t, 10*time.Second, "the lock to have a TTL", func() bool {
			ms, err := s.Do(t, "PTTL", name).AsInt64()
			return err == nil && ms > 0
		})
		if section.Err() != nil {
			t.Errorf("the section ended: %v", section.Err())
		}
		must(t, h.Unlock())
	})
}
