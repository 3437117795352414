package claim_test

import (
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// An inner hold with a long lease is unlocked, and the outer one is renewed: if the process dies then, the lock is free one
// lease of the session later. It stood until the end of the inner one's lease.
func TestAnUnlockedInnerLeaseDoesNotOutliveTheProcess(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(time.Second)
		ses := dial(t, s, rlock.Config{Lease: lease, RedissonWatchdog: lease}) // so named owners are trusted for no longer, whatever Redis keeps
		for name, m := range map[string]locktest.Mutex{
			"plain": rlock.New(ses, "plain"), "fair": fairlock.New(ses, "fair"), "write": rwlock.New(ses, "write"),
		} {
			for _, named := range []bool{false, true} {
				ctx := within(t, time.Minute)
				if named {
					ctx = rlock.WithOwner(ctx, "ann")
				}
				section, outer, err := m.Lock(ctx)
				must(t, err)
				_, inner, err := m.Lock(section, rlock.Lease(time.Hour))
				must(t, err)
				_, renewed, err := m.Lock(section)
				must(t, err)
				must(t, inner.Unlock())
				if n, _ := s.Do(t, "PTTL", name).AsInt64(); n <= 0 || n > lease.Milliseconds() {
					t.Errorf("%s, of a named owner %v: without the inner hold the lock lives for %d ms", name, named, n)
				}
				if redistest.MadeUpClock() { // the holds that stay are renewed
					locktest.Stays(t, section, lease+lease/2)
				}
				must(t, renewed.Unlock())
				must(t, outer.Unlock())
			}
		}
	})
}
