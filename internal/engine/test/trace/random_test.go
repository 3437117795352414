package trace_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// A traceCaller acquires at random, and ends at random what it got.
type traceCaller struct {
	rng  *rand.Rand
	s    *redistest.Server
	ses  *rlock.Session
	name string
	unit time.Duration // of what callers wait, and of leases
}

// A traceHold is a hold of any kind.
type traceHold interface{ Owner() string }

type traceAcquire func(ctx context.Context, opts ...rlock.LockOption) (context.Context, traceHold, error)

func ofLock[H traceHold](acquire func(context.Context, ...rlock.LockOption) (context.Context, H, error)) traceAcquire {
	return func(ctx context.Context, opts ...rlock.LockOption) (context.Context, traceHold, error) {
		return acquire(ctx, opts...)
	}
}

// acquires returns the ways to acquire, of all kinds.
func (c traceCaller) acquires() []traceAcquire {
	m, f := rlock.New(c.ses, c.name), fairlock.New(c.ses, c.name+"f")
	rw, sem, count := rwlock.New(c.ses, c.name+"r"), semaphore.New(c.ses, c.name+"s", 3), semaphore.NewCounter(c.ses, c.name+"c")
	wait := func(ctx context.Context, opts ...rlock.LockOption) (context.Context, *semaphore.Permits, error) {
		return sem.Acquire(ctx, 1+c.rng.IntN(2), opts...)
	}
	try := func(ctx context.Context, opts ...rlock.LockOption) (context.Context, *semaphore.Permits, error) {
		return sem.TryAcquire(ctx, 1+c.rng.IntN(2), opts...)
	}
	counted := func(ctx context.Context, _ ...rlock.LockOption) (context.Context, traceHold, error) {
		return nil, nil, count.TryAcquire(ctx, 1)
	}
	return []traceAcquire{ofLock(m.Lock), ofLock(m.TryLock), ofLock(rlock.New(c.ses, c.name, rlock.Fenced()).Lock), ofLock(f.Lock),
		ofLock(f.TryLock), ofLock(rw.RLock), ofLock(rw.RLock), ofLock(rw.Lock), ofLock(rw.TryRLock), ofLock(wait), ofLock(try), counted}
}

// unlock unlocks a hold of any kind.
func unlock(h traceHold) error {
	if p, ok := h.(*semaphore.Permits); ok {
		return p.Release()
	}
	return h.(*rlock.Hold).Unlock()
}

// run acquires something, perhaps more inside, and ends it.
func (c traceCaller) run(t *testing.T, ctx context.Context, depth int) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+c.rng.IntN(40))*c.unit)
	defer cancel()
	if c.rng.IntN(4) == 0 {
		ctx = rlock.WithOwner(ctx, fmt.Sprint("owner", c.rng.IntN(3)))
	}
	var opts []rlock.LockOption
	switch c.rng.IntN(8) {
	case 0:
		opts = append(opts, rlock.Lease(time.Duration(5+c.rng.IntN(30))*c.unit))
	case 1:
		opts = append(opts, rlock.Wait(time.Duration(c.rng.IntN(10))*c.unit))
	}
	all := c.acquires()
	acquire := all[c.rng.IntN(len(all))]
	section, h, err := acquire(ctx, opts...)
	if err != nil || h == nil {
		return
	}
	for range c.rng.IntN(3) {
		if depth < 2 {
			c.run(t, section, depth+1)
		}
	}
	switch c.rng.IntN(16) {
	case 0:
		if l, ok := h.(*rlock.Hold); ok {
			_ = l.Abandon()
		}
	case 1: // for ever, or until Close
		return
	case 2:
		if _, err := rlock.New(c.ses, c.name).ForceUnlock(context.Background()); err != nil {
			t.Error(err)
		}
	case 3:
		c.s.Do(t, "DEL", c.name)
	}
	_ = unlock(h)
	if c.rng.IntN(8) == 0 {
		_ = unlock(h)
	}
}

// Under random operations of all kinds, with holds that are lost, forced, abandoned, left to
// run out, nested, shared and handed over, every start has its one end. Nothing is open after
// Close. No hook is called under a mutex: each of them visits all that the session has.
func TestTraceBalancesRandom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		total := locktest.Cycles(t, s, 3000)
		if testing.Short() {
			total /= 5
		}
		const callers = 12
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var ledgers []*locktest.Ledger
		var sessions []*rlock.Session
		for range 2 {
			l := new(locktest.Ledger)
			ses := dial(t, s, rlock.Config{Lease: 400 * time.Millisecond, PollFloor: 20 * time.Millisecond, QueueLease: 300 * time.Millisecond,
				ReleaseTimeout: time.Minute, Trace: l.Trace()}) // a busy machine answers late, but it does
			l.Visit(func() { locktest.Books(ses) })
			ledgers, sessions = append(ledgers, l), append(sessions, ses)
		}
		// On a busy machine most callers of some ms have gone before Redis answers. Then again, with callers that wait longer.
		unit := time.Millisecond
		for {
			var wg sync.WaitGroup
			for i := range callers {
				c := traceCaller{rand.New(rand.NewPCG(seed, uint64(unit)+uint64(i))), s, sessions[i%2], fmt.Sprint("x", i%3), unit}
				wg.Go(func() {
					for range total / callers {
						c.run(t, context.Background(), 0)
					}
				})
			}
			wg.Wait()
			if unit >= 32*time.Millisecond || s.IsMini() || testing.Short() || !slices.ContainsFunc(ledgers, tooTame) {
				break
			}
			unit *= 2
		}
		for i, ses := range sessions {
			// A few holds and waiters are still there.
			_, _, err := rlock.New(ses, fmt.Sprint("last", i)).Lock(context.Background())
			must(t, err)
			must(t, ses.Close())
			redistest.Eventually(t, 5*time.Second, "gauges of 0, but "+ledgers[i].Gauges(), func() bool {
				return ledgers[i].Gauges() == locktest.AllZero
			})
			ledgers[i].Check(t)
			if missing := missingIn(ledgers[i], "hold closed"); len(missing) > 0 && !s.IsMini() && !testing.Short() {
				t.Errorf("%q did not occur: the test is too tame", missing)
			}
		}
	})
}

// tooTame reports whether something has not occurred that occurs before Close.
func tooTame(l *locktest.Ledger) bool { return len(missingIn(l)) > 0 }

// missingIn returns what has not occurred of all that random callers bring about, and of what else is wanted.
func missingIn(l *locktest.Ledger, wanted ...string) []string {
	return slices.DeleteFunc(append(wanted, "hold released", "hold lost", "hold abandoned", "hold expired", "grant redis",
		"grant memory", "grant shared", "acquire timeout", "acquire refused", "waiting"),
		func(what string) bool { return l.Count(what) > 0 })
}
