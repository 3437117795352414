package claim_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// An owner id that a session has made is used for one claim (R37): the sections of two sessions that
// contend for a lock have it without a break, and no other lock has it.
func TestAnOwnerIsUsedForOneClaim(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		sessions := []*rlock.Session{dial(t, s, rlock.Config{HandOverLimit: 3}), dial(t, s, rlock.Config{HandOverLimit: 3})}
		const locks, callers, rounds = 2, 4, 25
		var owners [locks][]string // of the sections of each lock, in their order
		var mu sync.Mutex          // guards them, since the race detector does not see the locks
		var all sync.WaitGroup
		for i := range locks * callers {
			lock := i % locks
			m := rlock.New(sessions[i/locks%len(sessions)], fmt.Sprint("x", lock))
			all.Go(func() {
				for range rounds {
					_, h, err := m.Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					owners[lock] = append(owners[lock], h.Owner())
					mu.Unlock()
					if err := h.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		used := map[string]bool{}
		for range rounds { // one after the other, so that each is a claim of its own
			_, h, err := rlock.New(sessions[0], "alone").Lock(ctx)
			must(t, err)
			if used[h.Owner()] {
				t.Fatalf("owner %s again", h.Owner())
			}
			used[h.Owner()] = true
			must(t, h.Unlock())
		}
		for lock := range owners {
			if n := len(owners[lock]); n != callers*rounds {
				t.Errorf("%d sections of lock %d, want %d", n, lock, callers*rounds)
			}
			before := ""
			for _, owner := range owners[lock] {
				if owner != before && used[owner] {
					t.Fatalf("lock %d: owner %s again, in a claim of its own: %v", lock, owner, owners[lock])
				}
				before, used[owner] = owner, true
			}
		}
	})
}
