package rlock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// The tests of the handover_*_test.go files are about locks that pass from goroutine to
// goroutine in memory: a claim stays, and its next section begins.

// passes counts the hand-overs in memory, and knows who was let in last.
type passes struct {
	mu    sync.Mutex
	n     int
	owner string
	lost  []string

	listens   func() bool // whether a session listens to the lock's channel; nil: it does not matter
	listening int         // refusals that were answered when one did

	onPass func() // called at each hand-over, if not nil
}

// trace returns the hooks that tell p.
func (p *passes) trace() *rlock.Trace {
	return &rlock.Trace{
		AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.Err == nil {
				p.owner = e.Owner
			}
		},
		Attempt: func(e locktrace.Attempt) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.Err == nil && !e.Granted {
				if p.listens != nil && p.listens() {
					p.listening++
				}
			}
		},
		HandedOver: func(locktrace.HandedOver) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.n++
			if p.onPass != nil {
				p.onPass()
			}
		},
		Lost: func(e locktrace.Lost) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost = append(p.lost, e.Owner+": "+e.Reason)
		},
	}
}

func (p *passes) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// last returns the owner that was let in last.
func (p *passes) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner
}

// settled reports whether a waiter that is the first of the line has nothing more to ask: it has listened to the lock's
// channel, and was refused again then.
func (p *passes) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listening > 0
}

func (p *passes) losses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// A stage is one lock, and a session behind a proxy whose goroutines take turns with it.
type stage struct {
	passes
	t    *testing.T
	s    *redistest.Server
	p    *faulttest.Proxy
	ses  *rlock.Session
	ctx  context.Context
	name string
	m    *rlock.Mutex
}

func newStage(t *testing.T, s *redistest.Server, cfg rlock.Config) *stage {
	t.Helper()
	st := &stage{t: t, s: s, ctx: within(t, 60*time.Second), name: redistest.Name(t)}
	st.listens = func() bool {
		channels, err := s.Do(t, "PUBSUB", "CHANNELS", faultLockChannel(st.name)).AsStrSlice()
		return err == nil && len(channels) == 1
	}
	cfg.Trace = st.trace()
	st.ses, st.p = faultDial(t, s, cfg)
	st.m = rlock.New(st.ses, st.name)
	return st
}

// lock takes the lock, which is free. Its time slice may last: it would be over by
// the time that a busy machine has come to the next step of the test.
func (st *stage) lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold) {
	st.t.Helper()
	section, h, err := st.m.Lock(ctx, opts...)
	must(st.t, err)
	st.ses.Unhurried(st.name)
	return section, h
}

// queue has one more goroutine wait at the end of the session's queue.
func (st *stage) queue(ctx context.Context, opts ...rlock.LockOption) <-chan faultLocked {
	st.t.Helper()
	return st.queueFor(st.m, ctx, opts...)
}

func (st *stage) queueFor(m *rlock.Mutex, ctx context.Context, opts ...rlock.LockOption) <-chan faultLocked {
	st.t.Helper()
	before := st.ses.WaitersOf(st.name)
	c := faultGoLock(m, ctx, opts...)
	redistest.Eventually(st.t, 10*time.Second, "one more in the queue", func() bool { return st.ses.WaitersOf(st.name) > before })
	return c
}

// in returns what a waiter got, which must be the lock.
func (st *stage) in(c <-chan faultLocked) faultLocked {
	st.t.Helper()
	got := locktest.Get(st.t, c, 10*time.Second, "the waiter is let in")
	must(st.t, got.err)
	return got
}

// handOver unlocks h, and has the lock pass to the waiter in memory.
func (st *stage) handOver(h *rlock.Hold, next <-chan faultLocked) faultLocked {
	st.t.Helper()
	before := st.count()
	must(st.t, h.Unlock())
	got := st.in(next)
	// One behind a renewal is told of a moment later.
	redistest.Eventually(st.t, 5*time.Second, "one hand-over in memory", func() bool { return st.count() == before+1 })
	return got
}

// hash returns the lock as it stands in Redis.
func (st *stage) hash() map[string]string {
	st.t.Helper()
	h, err := st.s.Do(st.t, "HGETALL", st.name).AsStrMap()
	must(st.t, err)
	return h
}

// stands waits until the lock in Redis has one owner, the one that was let in last, who
// holds it so often.
func (st *stage) stands(count string) {
	st.t.Helper()
	owner := st.last()
	redistest.Eventually(st.t, 5*time.Second, "the hash to be right", func() bool {
		h := st.hash()
		return len(h) == 1 && h[owner] == count
	})
}

// reached waits until a fault has struck.
func (st *stage) reached(seen <-chan struct{}) {
	st.t.Helper()
	locktest.Get(st.t, seen, 10*time.Second, "the command")
}

// outside checks that a Lock or TryLock has not succeeded while somebody else is in.
func (st *stage) outside(c <-chan faultLocked, what string) {
	st.t.Helper()
	select {
	case got := <-c:
		st.t.Fatalf("%s: it returned while another was inside: %v", what, got.err)
	default:
	}
}

// crew is a number of goroutines that take turns with the lock until they are told to stop,
// each time doing work inside.
type crew struct {
	wg   sync.WaitGroup
	stop context.CancelFunc
	ctx  context.Context
}

// start has n goroutines of the session at it. failed is asked about errors of Do; nil: each
// is one too many.
func (st *stage) start(n int, m *rlock.Mutex, work func(section context.Context), failed func(error) bool) *crew {
	c := new(crew)
	c.ctx, c.stop = context.WithCancel(st.ctx)
	for range n {
		c.wg.Go(func() {
			for c.ctx.Err() == nil {
				err := m.Do(st.ctx, func(section context.Context) error {
					work(section)
					return nil
				})
				if err != nil && (failed == nil || !failed(err)) {
					st.t.Error(err)
					return
				}
			}
		})
	}
	st.t.Cleanup(c.end)
	return c
}

// end stops the crew and waits for it.
func (c *crew) end() {
	c.stop()
	c.wg.Wait()
}

// runs waits for n hand-overs more.
func (st *stage) runs(n int) {
	st.t.Helper()
	until := st.count() + n
	redistest.Eventually(st.t, 20*time.Second, "hand-overs", func() bool { return st.count() >= until })
}

// ofSession reports whether an owner was made by ses.
func ofSession(ses *rlock.Session, owner string) bool { return strings.HasPrefix(owner, ses.ID()+":") }
