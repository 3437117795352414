package handover_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// Owners of two sessions lock one name in every way that there is, and nobody polls: all
// wake-ups must come, for a waiter that misses one would wait until its context ends.
func TestNoWakeUpIsMissed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const workers, inARow = 4, 3 // in each session
		st := &wakeUps{t: t, name: redistest.Name(t)}
		cfg := rlock.Config{
			PollFloor: time.Hour, Lease: time.Hour, HandOverLimit: 4,
			Trace: &rlock.Trace{HandedOver: func(locktrace.HandedOver) { st.passes.Add(1) }},
		}
		sessions := []*rlock.Session{dial(t, s, cfg), dial(t, s, cfg)}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var rngs [2 * workers]*rand.Rand
		for i := range rngs {
			rngs[i] = rand.New(rand.NewPCG(seed, uint64(i)))
		}
		var sections [2 * workers]context.Context // of each, the last one
		total := locktest.Cycles(t, s, 5000)
		if testing.Short() {
			total /= 5
		}
		for n := total; n > 0 && !t.Failed(); n -= 2 * workers * inARow {
			// Short rounds: the next release would make good what was missed.
			var wg sync.WaitGroup
			for i, rng := range rngs {
				wg.Go(func() {
					m := rlock.New(sessions[i%2], st.name)
					for range inARow {
						sections[i] = st.cycle(rng, m, sections[i])
					}
				})
			}
			wg.Wait()
		}
		if st.passes.Load() == 0 {
			t.Error("nothing was handed over")
		}
		t.Logf("%d turns, %d hand-overs", st.turns.Load(), st.passes.Load())
		locktest.NothingLeft(t, s, sessions...)
	})
}

type wakeUps struct {
	t      *testing.T
	name   string
	inside atomic.Int32
	turns  atomic.Int64
	passes atomic.Int64
}

// cycle is one Lock or TryLock, for long enough or not, now and then by the owner of an
// earlier section; and if that succeeds, what may be done inside.
func (st *wakeUps) cycle(rng *rand.Rand, m *rlock.Mutex, earlier context.Context) context.Context {
	from, patience := context.Background(), 30*time.Second
	if earlier != nil && rng.IntN(8) == 0 {
		from = context.WithoutCancel(earlier)
	}
	hurried := rng.IntN(8) == 0
	if hurried {
		patience = time.Duration(rng.IntN(3000)) * time.Microsecond
	}
	ctx, cancel := context.WithTimeout(from, patience)
	defer cancel()
	lock, try := m.Lock, rng.IntN(8) == 0
	if try {
		lock = m.TryLock
	}
	section, h, err := lock(ctx)
	switch {
	case err == nil:
	case !try && !hurried:
		st.t.Errorf("Lock has waited for %v: %v", patience, err)
		return earlier
	case !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, context.DeadlineExceeded):
		st.t.Errorf("Lock: %v", err)
		return earlier
	default:
		return earlier
	}
	if st.inside.Add(1) != 1 {
		st.t.Error("two owners are inside")
	}
	st.turns.Add(1)
	st.within(rng, m, section, h)
	st.inside.Add(-1)
	if err := h.Unlock(); err != nil {
		st.t.Errorf("Unlock: %v", err)
	}
	return section
}

func (st *wakeUps) within(rng *rand.Rand, m *rlock.Mutex, section context.Context, h *rlock.Hold) {
	switch rng.IntN(16) {
	case 0:
		time.Sleep(12 * time.Millisecond) // longer than a run of hand-overs
	case 1:
		_, nested, err := m.Lock(section)
		if err == nil {
			err = nested.Unlock()
		}
		if err != nil && section.Err() == nil { // else it ended with the caller's context
			st.t.Errorf("nested: %v", err)
		}
	case 2:
		_, nested, err := m.Lock(section, rlock.Lease(time.Second))
		if err == nil {
			_ = nested.Extend(section, 2*time.Second)
			_ = nested.Unlock()
		}
	case 3:
		h.Owner()
	}
}
