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
// No owner is ever inside with another while both can trust their locks, and they do get in.
func TestRandom(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	all := cluster(t, 5, real)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const enough = 20
	var got atomic.Int32
	inside := insiders{holds: map[*quorum.Hold]bool{}}
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
	began := time.Now()
	for time.Since(began) < 8*time.Second || got.Load() < enough && ctx.Err() == nil {
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
	took := time.Since(began)
	cancel()
	wg.Wait()
	if t.Logf("%d sections in %v", got.Load(), took); got.Load() < enough {
		t.Errorf("less than %d got in", enough)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// insiders are the holds of those that are inside.
type insiders struct {
	mu    sync.Mutex
	holds map[*quorum.Hold]bool
}

// enter adds a hold. One that is trusted by the clock excludes all others; a context may end late
// where a process does not get to run.
func (x *insiders) enter(t *testing.T, h *quorum.Hold) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for other := range x.holds {
		if theirs, mine := other.Remaining(), h.Remaining(); theirs > 0 && mine > 0 {
			t.Errorf("two are inside, whose locks can be trusted for %v and %v", theirs, mine)
		}
	}
	x.holds[h] = true
}

func (x *insiders) leave(h *quorum.Hold) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.holds, h)
}

// inRandom makes one try at a section of random length, which ends early when the lock is lost.
func inRandom(t *testing.T, ctx context.Context, rng *rand.Rand, m *quorum.Mutex, inside *insiders) bool {
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
	inside.enter(t, h)
	rest(section, time.Duration(rng.IntN(5))*time.Millisecond)
	if rng.IntN(60) == 0 { // for as long as it can be trusted, with a server or two away
		rest(section, 1500*time.Millisecond)
	}
	inside.leave(h)
	_ = h.Unlock() // it may have been lost
	return true
}
