package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/redistest"
	"relock/rlock"
)

// Random cycles of lock, nest, unlock, cancel and give up, in many goroutines of three
// sessions over few names, some of them as plain mutexes: exclusion holds as seen from
// outside, and no key, subscription, waiter or goroutine is left (R6). RELOCK_STRESS is the
// number of cycles.
func TestRandomCyclesLeaveNothing(t *testing.T) {
	total := 4000
	if v := os.Getenv("RELOCK_STRESS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("RELOCK_STRESS=%q is not a positive number of cycles", v)
		}
		total = n
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) { // not parallel: goroutines are counted
		total := total
		if s.IsMini() {
			total /= 10 // scripts are slow there
		}
		var sessions []*rlock.Session
		for range 3 {
			sessions = append(sessions, dial(t, s, rlock.Config{PollFloor: 50 * time.Millisecond}))
		}
		s.Keys(t) // the helper's own connection is not to be counted
		before := runtime.NumGoroutine()
		ctx := within(t, 8*time.Minute)
		const names, workers = 4, 24
		var inside [names]atomic.Int32
		var done, got atomic.Int64
		var wg sync.WaitGroup
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		for w := range workers {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			ses := sessions[w%len(sessions)]
			wg.Go(func() {
				for done.Add(1) <= int64(total) && !t.Failed() {
					n := rng.IntN(names)
					if randomCycle(t, ctx, rng, ses, fmt.Sprint("name-", n), &inside[n]) {
						got.Add(1)
					}
				}
			})
		}
		wg.Wait()
		nothingLeft(t, s, "redisson_lock_token:{name-0}", "redisson_lock_token:{name-1}")
		redistest.Eventually(t, 10*time.Second, "the goroutines to end", func() bool {
			return runtime.NumGoroutine() <= before
		})
		t.Logf("%d cycles, %d acquired", total, got.Load())
	})
}

// randomCycle does one random thing and reports whether it held the lock.
func randomCycle(t *testing.T, ctx context.Context, rng *rand.Rand, ses *rlock.Session, name string, inside *atomic.Int32) bool {
	m := fairlock.New(ses, name)
	if name < "name-2" {
		m = fairlock.New(ses, name, rlock.Fenced())
	}
	take := m.Lock
	var opts []rlock.LockOption
	cancel := context.CancelFunc(func() {})
	switch rng.IntN(9) {
	case 0:
		take = m.TryLock
	case 1:
		opts = append(opts, rlock.Wait(time.Duration(rng.IntN(4000))*time.Microsecond))
	case 2:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(4000))*time.Microsecond)
	case 3:
		ctx, cancel = context.WithCancel(ctx)
		yields := rng.IntN(100)
		go func() {
			for range yields {
				runtime.Gosched()
			}
			cancel()
		}()
	case 4:
		opts = append(opts, rlock.Lease(time.Minute))
	case 5:
		if rng.IntN(4) == 0 && name > "name-2" {
			take = rlock.New(ses, name).Lock
		}
	}
	defer cancel()
	section, h, err := take(ctx, opts...)
	if err != nil {
		if !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock: %v", err)
		}
		return false
	}
	if n := inside.Add(1); n != 1 {
		t.Errorf("%d inside", n)
	}
	for range rng.IntN(3) {
		if _, nested, err := take(section); err == nil {
			if err := nested.Unlock(); err != nil {
				t.Errorf("nested Unlock: %v", err)
			}
		} else if section.Err() == nil {
			t.Errorf("nested Lock: %v", err)
		}
	}
	inside.Add(-1)
	if err := h.Unlock(); err != nil {
		t.Errorf("Unlock: %v", err)
	}
	return true
}
