package claim_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Callers of two sessions exclude each other with UnlockAsync as with Unlock, while replies and requests are lost, and
// leave nothing.
func TestUnlockAsyncExcludesInFaults(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		// On miniredis a command of a connection that was cut may run late: what it takes ends with its lease.
		a, p := locktest.DialProxy(t, s, rlock.Config{Lease: 2 * time.Second})
		b := dial(t, s, rlock.Config{})
		ctx := within(t, time.Minute)
		kinds := [][]locktest.AsyncKind{locktest.AsyncKinds(a, ""), locktest.AsyncKinds(b, "")}
		var x asyncExclusion
		var workers sync.WaitGroup
		rounds := redistest.Rounds(60)
		for w := range 6 {
			rng := rand.New(rand.NewPCG(3, uint64(w)))
			workers.Go(func() {
				for range rounds {
					i := rng.IntN(len(x.inside))
					x.cycle(t, ctx, rng, i, kinds[w%2][i])
				}
			})
		}
		over := make(chan struct{})
		go func() { workers.Wait(); close(over) }()
		x.loseAcquiresAndReleases(t, p, over)
		locktest.Settled(t, a)
		locktest.Settled(t, b)
		if n := x.done.Load(); int(n) < rounds {
			t.Errorf("only %d sections", n)
		}
		for _, k := range kinds[1] {
			_, end, err := k.Lock(ctx)
			if err != nil {
				t.Errorf("%s: not free: %v", k.Name, err)
				continue
			}
			end()
		}
	})
}

// An asyncExclusion counts the callers that are inside of each kind of lock, and the sections that are over.
type asyncExclusion struct {
	inside [5]atomic.Int32
	done   atomic.Int32
}

// cycle tries to take the lock with that number, and checks that nobody else is inside. An error is of a fault.
func (x *asyncExclusion) cycle(t *testing.T, ctx context.Context, rng *rand.Rand, i int, k locktest.AsyncKind) {
	take := k.Lock
	if rng.IntN(4) == 0 {
		take = k.Try
	}
	_, end, err := take(ctx)
	if err != nil {
		return
	}
	if n := x.inside[i].Add(1); n != 1 {
		t.Errorf("%s: %d are inside", k.Name, n)
	}
	if rng.IntN(3) == 0 {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
	}
	x.inside[i].Add(-1)
	end()
	x.done.Add(1)
}

// loseAcquiresAndReleases lets replies and requests be lost, and connections break, until over is closed.
func (x *asyncExclusion) loseAcquiresAndReleases(t *testing.T, p *faulttest.Proxy, over <-chan struct{}) {
	rng := rand.New(rand.NewPCG(5, 7))
	var at int32
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(1+rng.IntN(20)) * time.Millisecond):
		}
		if n := x.done.Load(); n < at { // else faults come more quickly than callers recover from them
			continue
		}
		at = x.done.Load() + 5
		match := locktest.Calls(t, []string{"acquire", "release"}[rng.IntN(2)])
		switch rng.IntN(3) {
		case 0:
			p.DropReply(match)
		case 1:
			p.DropRequest(match)
		default:
			p.Cut()
		}
	}
}
