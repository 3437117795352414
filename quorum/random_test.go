package quorum_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/quorum"
	"relock/rlock"
)

// Three processes lock while servers stall, and are restarted empty: one of five at a time, or a little more.
// No owner is ever inside with another, as a counter outside of the lock tells, and most get in.
func TestRandom(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	all := cluster(t, 5, real)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var inside, got atomic.Int32
	var wg sync.WaitGroup
	for p := range uint64(3) {
		sessions := dial(t, all, rlock.Config{Lease: time.Second})
		m := quorum.New(sessions, "x")
		for w := range uint64(2) {
			rng := rand.New(rand.NewPCG(seed, 10*p+w))
			wg.Go(func() {
				for ctx.Err() == nil && !t.Failed() {
					if inRandom(t, ctx, rng, m, &inside) {
						got.Add(1)
					}
				}
			})
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1000))
	for ctx.Err() == nil {
		s := all[rng.IntN(len(all))]
		if rng.IntN(2) == 0 {
			s.Restart(t)
			rest(ctx, time.Duration(1000+rng.IntN(500))*time.Millisecond) // it gives no votes for a second
		} else {
			s.Pause()
			rest(ctx, time.Duration(rng.IntN(1500))*time.Millisecond)
			s.Resume()
		}
	}
	wg.Wait()
	t.Logf("%d sections", got.Load())
	if got.Load() < 20 {
		t.Errorf("only %d sections in 8 s", got.Load())
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// inRandom makes one try at a section of random length, which ends early when the lock is lost.
func inRandom(t *testing.T, ctx context.Context, rng *rand.Rand, m *quorum.Mutex, inside *atomic.Int32) bool {
	var opts []rlock.LockOption
	if rng.IntN(3) == 0 {
		opts = append(opts, rlock.Wait(time.Duration(rng.IntN(20))*time.Millisecond))
	}
	section, h, err := m.Lock(ctx, opts...)
	if err != nil {
		if !locktest.GaveUp(err) && ctx.Err() == nil && len(opts) == 0 {
			t.Errorf("Lock: %v", err)
		}
		return false
	}
	if n := inside.Add(1); n != 1 {
		t.Errorf("%d are inside", n)
	}
	rest(section, time.Duration(rng.IntN(5))*time.Millisecond)
	if rng.IntN(60) == 0 { // for as long as it can be trusted, with a server or two away
		rest(section, 1500*time.Millisecond)
	}
	inside.Add(-1)
	_ = h.Unlock() // it may have been lost
	return true
}
