package multilock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
	"relock/semaphore"
)

// Random callers of three sessions take random sets of the locks in random orders, some by
// hand in an order of their own, some give up: none is ever inside with another, none waits
// for ever, and nothing is left.
func TestRandom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 5*time.Minute)
		names := []string{"a", "b", "c", "d"}
		const permits = 2
		var sessions []*rlock.Session
		for range 3 {
			sessions = append(sessions, dial(t, s, rlock.Config{}))
		}
		var inside [4]atomic.Int32
		total := locktest.Cycles(t, s, 3000)
		if testing.Short() {
			total /= 5
		}
		var done, got atomic.Int64
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var wg sync.WaitGroup
		for w := range 12 {
			rng, ses := rand.New(rand.NewPCG(seed, uint64(w))), sessions[w%len(sessions)]
			wg.Go(func() {
				for done.Add(1) <= total && !t.Failed() {
					chosen := rng.Perm(len(names))[:1+rng.IntN(len(names))]
					if inRandom(t, ctx, rng, ses, names, chosen, permits, &inside) {
						got.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if got.Load() < total/4 { // half of them may give up
			t.Errorf("only %d of %d got in", got.Load(), total)
		}
		redistest.Eventually(t, 10*time.Second, "nothing but the semaphore to be left", func() bool {
			return locktest.Describe(t, s) == fmt.Sprintf("d=%d", permits)
		})
	})
}

// inRandom makes one random try at some of the locks. The last of the names is a semaphore.
func inRandom(t *testing.T, ctx context.Context, rng *rand.Rand, ses *rlock.Session, names []string, chosen []int, permits int, inside *[4]atomic.Int32) bool {
	var locks []multilock.Part
	for _, i := range chosen {
		if i == len(names)-1 {
			locks = append(locks, multilock.Permits(semaphore.New(ses, names[i], permits), 1))
		} else {
			locks = append(locks, rlock.New(ses, names[i]))
		}
	}
	var opts []rlock.LockOption
	switch rng.IntN(6) {
	case 0:
		opts = append(opts, rlock.Wait(0))
	case 1:
		opts = append(opts, rlock.Wait(time.Duration(rng.IntN(20))*time.Millisecond))
	case 2:
		short, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
		defer cancel()
		ctx = short
	case 3:
		opts = append(opts, rlock.Lease(time.Minute))
	}
	err := multilock.New(locks...).Do(ctx, func(context.Context) error {
		for _, i := range chosen {
			most := int32(1)
			if i == len(names)-1 {
				most = int32(permits)
			}
			if n := inside[i].Add(1); n > most {
				t.Errorf("%d are inside of %s", n, names[i])
			}
			defer inside[i].Add(-1)
		}
		return nil
	}, opts...)
	if err != nil && !locktest.GaveUp(err) {
		t.Errorf("lock: %v", err)
	}
	return err == nil
}
