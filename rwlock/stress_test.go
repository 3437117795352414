package rwlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A writer weighs as much as may be inside, a reader 1: either one writer or readers.
const aWriter = 1_000_000

// A writer is alone, counted from outside, over 4 sessions of 16 goroutines each.
func TestExclusion(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		total := locktest.Cycles(t, s, 8000)
		ctx := within(t, 5*time.Minute)
		var inside, done, together atomic.Int64
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
						if n := inside.Add(as); n > aWriter {
							t.Errorf("inside are %d readers and %d writers", n%aWriter, n/aWriter)
						}
						if as == 1 && inside.Load() > 1 {
							together.Add(1)
						}
						runtime.Gosched()
						inside.Add(-as)
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

// Random cycles of both sides leave nothing.
func TestRandomCyclesLeaveNothing(t *testing.T) {
	locktest.Stress{
		Cycles:   30_000,
		Names:    []string{"name-0", "name-1", "name-2", "name-3"},
		Limit:    aWriter,
		Patience: 3 * time.Millisecond,
		Lock:     takeSide,
		Left: func(t *testing.T, s *redistest.Server, _ []*rlock.Session) {
			nothingLeft(t, s)
		},
	}.Run(t)
}

// takeSide takes a random side, and in there what may nest: both sides in the write side,
// and in the read side the read side alone. All is unlocked in a random order.
func takeSide(a *locktest.Attempt) (*locktest.Taken, error) {
	m := rwlock.New(a.Session, a.Name)
	lock, as := m.RLock, int32(1)
	if a.Try {
		lock = m.TryRLock
	}
	if a.Rand.IntN(3) == 0 {
		lock, as = m.Lock, aWriter
		if a.Try {
			lock = m.TryLock
		}
	}
	section, h, err := lock(a.Ctx, a.Opts...)
	if err != nil {
		return nil, err
	}
	holds := []*rlock.Hold{h}
	nest := func() {
		for range a.Rand.IntN(3) {
			nested := m.RLock
			if as == aWriter && a.Rand.IntN(2) == 0 {
				nested = m.Lock
			} else if as == 1 && a.Rand.IntN(3) == 0 {
				if _, _, err := m.Lock(section); err == nil || (section.Err() == nil && !errors.Is(err, rwlock.ErrUpgrade)) {
					a.T.Errorf("upgrade: %v", err)
				}
			}
			if _, h, err := nested(section); err == nil {
				holds = append(holds, h)
			} else if section.Err() == nil && !locktest.GaveUp(err) {
				a.T.Errorf("nested Lock: %v", err)
			}
		}
	}
	unlock := func() (err error) {
		a.Rand.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
		for _, h := range holds {
			err = errors.Join(err, h.Unlock())
		}
		return err
	}
	return &locktest.Taken{Weight: as, Nest: nest, Unlock: unlock}, nil
}

// One named owner that nests and downgrades in two sessions at once: its count is right
// in the end, and what stays is bounded by a TTL.
func TestSharedOwnerInTwoSessions(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		patient := slow
		patient.ReleaseTimeout = time.Minute // a busy machine answers late, but it does
		ms := []*rwlock.RWMutex{rwlock.New(dial(t, s, patient), "x"), rwlock.New(dial(t, s, patient), "x")}
		other := rwlock.New(dial(t, s, patient), "x")
		ctx := rlock.WithOwner(within(t, 2*time.Minute), "me")
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
				for range redistest.Rounds(50) {
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
			const gone = -2 * time.Millisecond // it has ended since it was listed
			if got := pttl(t, s, key); got < 0 && got != gone || field(t, s, "x", "me") != "" {
				t.Errorf("%s is left, TTL %v", key, got)
			}
		}
	})
}
