package rwlock_test

import (
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The holds of both sides of one section may be unlocked at the same time: neither is lost.
func TestBothSidesUnlockedAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		// An Unlock that hangs is seen by its minute; a busy machine may take longer than the default.
		m := rwlock.New(locktest.Dial(t, s, rlock.Config{ReleaseTimeout: time.Minute}), "x")
		for range redistest.Rounds(200) {
			section, w, err := m.Lock(t.Context())
			must(t, err)
			_, r, err := m.RLock(section)
			must(t, err)
			var both sync.WaitGroup
			for what, h := range map[string]*rlock.Hold{"write": w, "read": r} {
				both.Go(func() {
					if err := h.Unlock(); err != nil {
						t.Errorf("%s: Unlock: %v", what, err)
					}
				})
			}
			both.Wait()
			if st, err := m.State(t.Context()); err != nil || st.Mode != "" {
				t.Fatalf("State %+v, %v, want a free lock", st, err)
			}
		}
	})
}
