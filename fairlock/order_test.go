package fairlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/locktest"
	"relock/internal/redistest"
	"relock/rlock"
)

// Whoever came first is served first: 3 sessions, 20 waiters each, one by one.
func TestServedInOrderOfArrival(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := locktest.Within(t, 60*time.Second)
		var sessions []*rlock.Session
		for range 3 {
			sessions = append(sessions, locktest.Dial(t, s, rlock.Config{}))
		}
		name := redistest.Name(t)
		_, first, err := fairlock.New(sessions[0], name).Lock(ctx)
		locktest.Must(t, err)

		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i := range 60 {
			m := fairlock.New(sessions[i%3], name)
			wg.Go(func() {
				if err := m.Do(ctx, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					served = append(served, i)
					return nil
				}); err != nil {
					t.Errorf("waiter %d: %v", i, err)
				}
			})
			redistest.Eventually(t, 10*time.Second, fmt.Sprint("waiter ", i, " to queue"), func() bool {
				n, err := m.Waiters(ctx)
				locktest.Must(t, err)
				return n == i+1
			})
		}
		locktest.Must(t, first.Unlock())
		wg.Wait()
		for i, n := range served {
			if i != n {
				t.Fatalf("served in the order %v", served)
			}
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}
