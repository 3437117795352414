package rlock_test

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

	"relock/internal/redistest"
	"relock/rlock"
)

// cycles is how many random cycles the stress tests run: RELOCK_STRESS, or few enough
// for every day.
func cycles(t *testing.T, everyDay int) int {
	if v := os.Getenv("RELOCK_STRESS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("RELOCK_STRESS=%q is not a positive number of cycles", v)
		}
		return n
	}
	return everyDay
}

// Random cycles of lock, nest, unlock, cancel, give up, in many goroutines of three
// sessions over few names: exclusion holds as seen from outside, and no key, renewal,
// subscription, waiter or goroutine is left (R6).
func TestRandomCyclesLeaveNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		total := cycles(t, 100_000)
		if s.IsMini() {
			total /= 10 // scripts are forty times slower there
		}
		sessions := make([]*rlock.Session, 3)
		for i := range sessions {
			sessions[i] = dial(t, s, rlock.Config{})
		}
		s.Keys(t) // the helper's own connection is not to be counted
		before := runtime.NumGoroutine()
		ctx := within(t, 8*time.Minute)
		const names, workers = 5, 24
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
					if randomCycle(t, ctx, rng, rlock.New(ses, fmt.Sprint("name-", n)), &inside[n]) {
						got.Add(1)
					}
				}
			})
		}
		wg.Wait()
		nothingLeft(t, s, sessions...)
		redistest.Eventually(t, 10*time.Second, "the goroutines to end", func() bool {
			return runtime.NumGoroutine() <= before
		})
		t.Logf("%d cycles, %d acquired", total, got.Load())
	})
}

// randomCycle does one random thing with m and reports whether it held it.
func randomCycle(t *testing.T, ctx context.Context, rng *rand.Rand, m *rlock.Mutex, inside *atomic.Int32) bool {
	var opts []rlock.LockOption
	cancel := context.CancelFunc(func() {})
	try := false
	switch rng.IntN(8) {
	case 0:
		try = true
	case 1:
		opts = append(opts, rlock.Wait(time.Duration(rng.IntN(2000))*time.Microsecond))
	case 2:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
	case 3:
		ctx, cancel = context.WithCancel(ctx)
		yields := rng.IntN(50)
		go func() {
			for range yields {
				runtime.Gosched()
			}
			cancel()
		}()
	case 4:
		opts = append(opts, rlock.Lease(time.Minute))
	}
	defer cancel()
	lock := m.Lock
	if try {
		lock = m.TryLock
	}
	section, h, err := lock(ctx, opts...)
	if err != nil {
		if !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock: %v", err)
		}
		return false
	}
	if n := inside.Add(1); n != 1 {
		t.Errorf("%d inside", n)
	}
	depth := rng.IntN(3)
	for range depth {
		if _, nested, err := m.Lock(section); err == nil {
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
