package locktest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A Stress is a test of random cycles of lock, nest, unlock, cancel and give up, in many
// goroutines of three sessions over few names: exclusion holds as seen from outside, and
// no key, renewal, subscription, waiter or goroutine is left (R6).
type Stress struct {
	Cycles   int           // how many for every day, see Cycles
	Names    []string      // of the locks
	Limit    int32         // what those inside of one lock may weigh together
	Patience time.Duration // random waits are shorter; above 0
	Config   rlock.Config  // of the sessions; its Trace and HandOverLimit are set by Run
	HandOver bool          // the lock is one that may pass from owner to owner in memory

	// Begin, if any, runs for each server before all else.
	Begin func(t *testing.T, s *redistest.Server)
	// Setup, if any, runs before the cycles.
	Setup func(t *testing.T, ctx context.Context, ses *rlock.Session)
	// Lock takes the lock that the attempt names, as the attempt says. It is called by many
	// goroutines at once.
	Lock func(a *Attempt) (*Taken, error)
	// Left waits until nothing is left but what may be.
	Left func(t *testing.T, s *redistest.Server, sessions []*rlock.Session)
}

// An Attempt is one random try at a lock.
type Attempt struct {
	T       *testing.T
	Ctx     context.Context // may end at any moment
	Rand    *rand.Rand      // the goroutine's own
	Session *rlock.Session
	Name    string
	Try     bool // with TryLock, or what it is called
	Opts    []rlock.LockOption
	Leased  bool // Opts is a Lease, and nothing else
}

// Taken is what came of an Attempt that succeeded.
type Taken struct {
	Weight int32        // what it adds to those inside
	Nest   func()       // what to do inside, or nil
	Unlock func() error // takes back all
}

// Run runs the test on both kinds of server; with -short, a tenth of the cycles, and 4000 at
// most. They are not parallel: goroutines are counted.
func (st Stress) Run(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const sessionCount, workers = 3, 24
		ctx := Within(t, 8*time.Minute)
		total, seed := Cycles(t, s, st.Cycles), rand.Uint64()
		if testing.Short() {
			total = min(total/10, 4000)
		}
		t.Logf("seed %d", seed)
		if st.Begin != nil {
			st.Begin(t, s)
		}
		var handed atomic.Int64
		cfg := st.Config
		cfg.ReleaseTimeout = cmp.Or(cfg.ReleaseTimeout, time.Minute) // a busy machine answers late, but it does
		cfg.Trace = &rlock.Trace{
			Lost: func(e locktrace.Lost) {
				t.Errorf("%s: %s was lost: %s", e.Name, e.Owner, e.Reason)
			},
			HandedOver: func(locktrace.HandedOver) { handed.Add(1) },
		}
		var sessions []*rlock.Session
		for i := range sessionCount { // off, the default, and few, side by side
			limits := [...]int{-1, 0, 1, 3}
			cfg.HandOverLimit = limits[(seed+uint64(i))%uint64(len(limits))]
			sessions = append(sessions, Dial(t, s, cfg))
		}
		if st.Setup != nil {
			st.Setup(t, ctx, sessions[0])
		}
		s.Keys(t) // the helper's own connection is not to be counted
		before := goroutines()
		inside := make([]atomic.Int32, len(st.Names))
		var done, got atomic.Int64
		var wg sync.WaitGroup
		for w := range workers {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			wg.Go(func() {
				for done.Add(1) <= total && !t.Failed() {
					n := rng.IntN(len(st.Names))
					a := &Attempt{T: t, Ctx: ctx, Rand: rng, Session: sessions[w%sessionCount], Name: st.Names[n]}
					if st.Cycle(a, &inside[n]) {
						got.Add(1)
					}
				}
			})
		}
		wg.Wait()
		st.Left(t, s, sessions)
		redistest.Eventually(t, 10*time.Second, "the goroutines to end", func() bool {
			return goroutines() <= before
		})
		t.Logf("%d cycles, %d acquired, %d handed over in memory", total, got.Load(), handed.Load())
		if st.HandOver && handed.Load() == 0 {
			t.Error("no hand-over in memory")
		}
	})
}

// goroutines counts those that are not of miniredis. That has one for each connection, and a session may make
// its direct one at any time.
func goroutines() (n int) {
	all := make([]byte, 1<<20)
	for stack := range bytes.SplitSeq(all[:runtime.Stack(all, true)], []byte("\n\n")) {
		if !bytes.Contains(stack, []byte("alicebob/miniredis")) {
			n++
		}
	}
	return n
}

// Cycles is how many random cycles a stress test runs: RELOCK_STRESS, or few enough for
// every day; and a tenth of that on miniredis, where scripts are slow.
func Cycles(t testing.TB, s *redistest.Server, everyDay int) int64 {
	t.Helper()
	total := everyDay
	if v := os.Getenv("RELOCK_STRESS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("RELOCK_STRESS=%q is not a positive number of cycles", v)
		}
		total = n
	}
	if s.IsMini() {
		total /= 10
	}
	return int64(total)
}

// Cycle makes one attempt, in a random way, and reports whether it got the lock. inside is
// what those inside of that lock weigh.
func (st Stress) Cycle(a *Attempt, inside *atomic.Int32) bool {
	defer a.draw(st.Patience)()
	taken, err := st.Lock(a)
	if err != nil {
		// A try ends after a second without an answer, which a busy machine can bring about.
		if !GaveUp(err) && !(a.Try && errors.Is(err, rlock.ErrUnavailable)) {
			a.T.Errorf("lock %s: %v", a.Name, err)
		}
		return false
	}
	if now := inside.Add(taken.Weight); now > st.Limit {
		a.T.Errorf("inside of %s are %d, more than %d", a.Name, now, st.Limit)
	}
	if taken.Nest != nil {
		taken.Nest()
	}
	inside.Add(-taken.Weight) // whatever is unlocked first
	if err := taken.Unlock(); err != nil {
		a.T.Errorf("unlock %s: %v", a.Name, err)
	}
	return true
}

// draw makes the attempt special in one way or, often, in none. The caller ends its context
// with cancel.
func (a *Attempt) draw(patience time.Duration) (cancel context.CancelFunc) {
	cancel = func() {}
	short := func() time.Duration { return time.Duration(a.Rand.Int64N(int64(patience))) }
	switch a.Rand.IntN(8) {
	case 0:
		a.Try = true
	case 1:
		a.Opts = append(a.Opts, rlock.Wait(short()))
	case 2:
		a.Ctx, cancel = context.WithTimeout(a.Ctx, short())
	case 3:
		a.Ctx, cancel = context.WithCancel(a.Ctx)
		yields, cancel := a.Rand.IntN(100), cancel
		go func() {
			for range yields {
				runtime.Gosched()
			}
			cancel()
		}()
	case 4:
		a.Opts, a.Leased = append(a.Opts, rlock.Lease(time.Minute)), true
	}
	return cancel
}

// A Mutex is one of any kind.
type Mutex interface {
	Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

// Mutex makes the attempt at m, in which it nests up to two times.
func (a *Attempt) Mutex(m Mutex) (*Taken, error) {
	lock := m.Lock
	if a.Try {
		lock = m.TryLock
	}
	section, h, err := lock(a.Ctx, a.Opts...)
	if err != nil {
		return nil, err
	}
	nest := func() {
		for range a.Rand.IntN(3) {
			if _, nested, err := lock(section); err == nil {
				if err := nested.Unlock(); err != nil {
					a.T.Errorf("nested Unlock: %v", err)
				}
			} else if section.Err() == nil {
				a.T.Errorf("nested Lock: %v", err)
			}
		}
	}
	return &Taken{1, nest, h.Unlock}, nil
}

// GaveUp reports whether err is that of a caller that did not wait any longer.
func GaveUp(err error) bool {
	return errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
