package handover_test

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

// Random readers and writers of three sessions, which share and hand over in memory: they
// nest, lapse with fixed leases, give up, and one session closes in the middle of it. Never
// is a writer in with anybody else, every section ends with its cause, everybody who has
// the patience gets in, and at the end nothing is left in Redis or on the books.
func TestShareRandomCycles(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const aWriter = 1 << 20
		total, seed := locktest.Cycles(t, s, 6000), rand.Uint64()
		t.Logf("seed %d", seed)
		ctx := within(t, 2*time.Minute)
		var sessions []*rlock.Session
		for range 3 {
			sessions = append(sessions, dial(t, s, rlock.Config{}))
		}
		closing, err := rlock.Dial(ctx, s.Option(), rlock.Config{})
		must(t, err)
		sessions = append(sessions, closing)
		var inside, done, got, unanswered atomic.Int64
		stalls := locktest.WatchStalls(t)
		var wg sync.WaitGroup
		for w := range 64 {
			c := shareCycle{t, ctx, rand.New(rand.NewPCG(seed, uint64(w))), sessions[w%4], w%4 == 3, &inside, &unanswered, aWriter}
			wg.Go(func() {
				for n := done.Add(1); n <= total && !t.Failed(); n = done.Add(1) {
					if n == total/2 {
						must(t, closing.Close())
					}
					if c.run() {
						got.Add(1)
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d cycles, %d got in", total, got.Load())
		if got.Load() < total/6 { // those of the closed session, which never do, take many of the turns
			t.Error("too few got in")
		}
		if n := unanswered.Load(); n > 0 && stalls.Longest() < 10*time.Millisecond {
			t.Errorf("%d attempts had no answer on a machine that is not busy", n)
		}
		redistest.Eventually(t, 10*time.Second, "no key", func() bool { return len(s.Keys(t)) == 0 })
		for _, ses := range sessions[:3] {
			redistest.Eventually(t, 10*time.Second, "empty books", func() bool {
				held, asking, locks, scheduled, active := locktest.Books(ses)
				return held+asking+locks+scheduled+active == 0
			})
		}
	})
}

// A shareCycle is what one goroutine does again and again.
type shareCycle struct {
	t          *testing.T
	ctx        context.Context
	rng        *rand.Rand
	ses        *rlock.Session
	closes     bool // the session does, at some time
	inside     *atomic.Int64
	unanswered *atomic.Int64 // tries that had no answer within a second: that is of a busy machine
	aWriter    int64
}

func (c *shareCycle) run() bool {
	m := rwlock.New(c.ses, "x")
	lock, as, try := m.RLock, int64(1), false
	switch c.rng.IntN(12) {
	case 0:
		lock, as = m.Lock, c.aWriter
	case 1:
		lock, try = m.TryRLock, true
	case 2:
		lock, as, try = m.TryLock, c.aWriter, true
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	patient := c.rng.IntN(3) > 0
	if !patient {
		yields := c.rng.IntN(200)
		go func() {
			for range yields {
				runtime.Gosched()
			}
			cancel()
		}()
	}
	section, h, err := lock(ctx)
	switch {
	case err == nil:
	case c.closes && errors.Is(err, rlock.ErrClosed):
		return false
	case !patient && errors.Is(err, context.Canceled), try && errors.Is(err, rlock.ErrNotAcquired):
		return false
	case try && errors.Is(err, rlock.ErrUnavailable):
		c.unanswered.Add(1)
		return false
	default:
		c.t.Errorf("lock: %v", err)
		return false
	}
	counts := as
	if c.closes { // while it is inside
		counts = 0
	}
	if n := c.inside.Add(counts); n > c.aWriter {
		c.t.Errorf("inside are %d readers and %d writers", n%c.aWriter, n/c.aWriter)
	}
	holds := c.nest(m, section, h, as)
	c.inside.Add(-counts)
	c.rng.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
	for _, h := range holds {
		if err := h.Unlock(); err != nil && !(c.closes && errors.Is(err, rlock.ErrClosed)) {
			c.t.Errorf("unlock: %v", err)
		}
	}
	<-section.Done()
	switch cause := context.Cause(section); {
	case cause == rlock.ErrReleased, c.closes && cause == rlock.ErrClosed, !patient && cause == context.Canceled:
	default:
		c.t.Errorf("the section ended with %v", cause)
	}
	return true
}

// nest takes more of the lock inside of it.
func (c *shareCycle) nest(m *rwlock.RWMutex, section context.Context, h *rlock.Hold, as int64) []*rlock.Hold {
	if id, _ := rlock.OwnerFrom(section); id != "" {
		c.t.Errorf("a nameless owner is named %q", id)
	}
	holds := []*rlock.Hold{h}
	for range c.rng.IntN(3) {
		var opts []rlock.LockOption
		if c.rng.IntN(3) == 0 {
			opts = append(opts, rlock.Lease(time.Minute))
		}
		if _, nested, err := m.RLock(section, opts...); err == nil {
			holds = append(holds, nested)
		} else if section.Err() == nil {
			c.t.Errorf("nested RLock: %v", err)
		}
	}
	if as == 1 && c.rng.IntN(8) == 0 {
		if _, _, err := m.Lock(section); section.Err() == nil && !errors.Is(err, rwlock.ErrUpgrade) {
			c.t.Errorf("upgrade: %v", err)
		}
	}
	return holds
}
