package rwlock_test

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
	"relock/rwlock"
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

// inThere counts who is inside, from outside the lock: readers, or 1 000 000 a writer.
type inThere struct{ n atomic.Int64 }

const aWriter = 1_000_000

func (i *inThere) enter(t *testing.T, as int64) {
	n := i.n.Add(as)
	if n != as && (as == aWriter || n >= aWriter) {
		t.Errorf("inside are %d readers and %d writers", n%aWriter, n/aWriter)
	}
}

func (i *inThere) leave(as int64) { i.n.Add(-as) }

// A writer is alone, counted from outside, over 4 sessions of 16 goroutines each.
func TestExclusion(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		total := int64(cycles(t, 8000))
		if s.IsMini() {
			total /= 8 // scripts are slow there
		}
		ctx := within(t, 5*time.Minute)
		var inside inThere
		var done atomic.Int64
		together := new(atomic.Int64)
		var wg sync.WaitGroup
		for range 4 {
			m := rwlock.New(dial(t, s, rlock.Config{}), "x")
			for g := range 16 {
				rng := rand.New(rand.NewPCG(uint64(g), rand.Uint64()))
				wg.Go(func() {
					for done.Add(1) <= total && !t.Failed() {
						lock, as := m.RLock, int64(1)
						if rng.IntN(4) == 0 {
							lock, as = m.Lock, aWriter
						}
						_, h, err := lock(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						inside.enter(t, as)
						if as == 1 && inside.n.Load() > 1 {
							together.Add(1)
						}
						runtime.Gosched()
						inside.leave(as)
						if err := h.Unlock(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if together.Load() == 0 {
			t.Error("no reader ever met another one")
		}
		nothingLeft(t, s)
	})
}

// Random cycles of everything, in many goroutines of three sessions over few names, with
// shared owners among them: exclusion holds as seen from outside, and no key, renewal,
// subscription, waiter or goroutine is left (R6).
func TestRandomCyclesLeaveNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		total := int64(cycles(t, 30_000))
		if s.IsMini() {
			total /= 10 // scripts are slow there
		}
		sessions := make([]*rlock.Session, 3)
		for i := range sessions {
			sessions[i] = dial(t, s, rlock.Config{Trace: &rlock.Trace{Lost: func(name, owner, reason string) {
				t.Errorf("%s: %s was lost: %s", name, owner, reason)
			}}})
		}
		s.Keys(t) // the helper's own connection is not to be counted
		before := runtime.NumGoroutine()
		ctx := within(t, 8*time.Minute)
		const names, workers = 4, 24
		var inside [names]inThere
		var done, got atomic.Int64
		var wg sync.WaitGroup
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		for w := range workers {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			ses := sessions[w%len(sessions)]
			wg.Go(func() {
				for done.Add(1) <= total && !t.Failed() {
					n := rng.IntN(names)
					if randomCycle(t, ctx, rng, rwlock.New(ses, fmt.Sprint("name-", n)), &inside[n]) {
						got.Add(1)
					}
				}
			})
		}
		wg.Wait()
		nothingLeft(t, s)
		redistest.Eventually(t, 10*time.Second, "the goroutines to end", func() bool {
			return runtime.NumGoroutine() <= before
		})
		t.Logf("%d cycles, %d acquired", total, got.Load())
	})
}

// randomCycle does one random thing with m and reports whether it held it.
func randomCycle(t *testing.T, ctx context.Context, rng *rand.Rand, m *rwlock.RWMutex, inside *inThere) bool {
	var opts []rlock.LockOption
	try := false
	cancel := context.CancelFunc(func() {})
	switch rng.IntN(8) {
	case 0:
		try = true
	case 1:
		opts = append(opts, rlock.Wait(time.Duration(rng.IntN(3000))*time.Microsecond))
	case 2:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
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
	lock, as := m.RLock, int64(1)
	if try {
		lock = m.TryRLock
	}
	if rng.IntN(3) == 0 {
		lock, as = m.Lock, aWriter
		if try {
			lock = m.TryLock
		}
	}
	section, h, err := lock(ctx, opts...)
	if err != nil {
		expected(t, "Lock", err)
		return false
	}
	inside.enter(t, as)
	holds := []*rlock.Hold{h}
	for range rng.IntN(3) {
		nested := m.RLock
		if as == aWriter && rng.IntN(2) == 0 {
			nested = m.Lock
		} else if as == 1 && rng.IntN(3) == 0 {
			if _, _, err := m.Lock(section); err == nil || (section.Err() == nil && !errors.Is(err, rwlock.ErrUpgrade)) {
				t.Errorf("upgrade: %v", err)
			}
		}
		if _, h, err := nested(section); err == nil {
			holds = append(holds, h)
		} else if section.Err() == nil {
			expected(t, "nested Lock", err)
		}
	}
	inside.leave(as) // whatever is unlocked first
	rng.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
	for _, h := range holds {
		if err := h.Unlock(); err != nil {
			t.Errorf("Unlock: %v", err)
		}
	}
	return true
}

func expected(t *testing.T, what string, err error) {
	if !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", what, err)
	}
}

// One named owner that nests and downgrades in two sessions at once: its count is right
// in the end, and what stays is bounded by a TTL.
func TestSharedOwnerInTwoSessions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ms := []*rwlock.RWMutex{rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")}
		other := rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 60*time.Second), "me")
		for i, m := range ms {
			_, w := hold(t, ctx, m.Lock)
			_, w2 := hold(t, ctx, ms[1-i].Lock)
			_, r := hold(t, ctx, ms[1-i].RLock)
			must(t, w.Unlock())
			refused(t, context.Background(), other.TryRLock, "a reader while a write hold is left")
			_, r2 := hold(t, ctx, m.RLock)
			must(t, w2.Unlock())
			_, foreign := hold(t, context.Background(), other.TryRLock)
			must(t, r.Unlock())
			if got := field(t, s, "x", "me"); got != "1" {
				t.Errorf("the count is %q, want 1", got)
			}
			must(t, foreign.Unlock())
			must(t, r2.Unlock())
			nothingLeft(t, s)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 50 {
					section, h, err := ms[i%2].RLock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if _, inner, err := ms[i%2].RLock(section); err != nil {
						t.Error(err)
					} else if err := inner.Unlock(); err != nil {
						t.Error(err)
					}
					if err := h.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, key := range s.Keys(t) { // timeout keys of higher holds may wait for their end
			if got := pttl(t, s, key); got <= 0 || field(t, s, "x", "me") != "" {
				t.Errorf("%s is left, TTL %v", key, got)
			}
		}
	})
}
