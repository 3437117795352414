package line_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// A locker is a lock that one caller has at a time.
type locker interface {
	Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

// opener gives a session's handle of a lock.
type opener func(*rlock.Session, string) locker

func plainLock(ses *rlock.Session, name string) locker { return rlock.New(ses, name) }
func writeLock(ses *rlock.Session, name string) locker { return rwlock.New(ses, name) }
func readLock(ses *rlock.Session, name string) locker  { return reader{rwlock.New(ses, name)} }

// A reader is the read side of a lock.
type reader struct{ m *rwlock.RWMutex }

func (r reader) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return r.m.RLock(ctx, opts...)
}

func (r reader) TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return r.m.TryRLock(ctx, opts...)
}

// A contest is some sessions that use one lock without a pause, each by one goroutine: somebody always waits in the
// line. It counts what the line says to them.
type contest struct {
	t                     *testing.T
	s                     *redistest.Server
	name                  string
	lock                  opener
	ctx                   context.Context
	stop                  context.CancelFunc
	wg                    sync.WaitGroup
	sections              atomic.Int64
	granted, called, open atomic.Int64
}

// newContest makes a contest of nobody, for a plain lock.
func newContest(t *testing.T, s *redistest.Server) *contest {
	t.Helper()
	r := &contest{t: t, s: s, name: redistest.Name(t), lock: plainLock}
	r.ctx, r.stop = context.WithCancel(within(t, 2*time.Minute))
	t.Cleanup(r.end)
	return r
}

// about returns a time between three and five quarters of d: Redis's microseconds are dice, and on the made-up clock of
// a bubble sections that take the same time throw the same number again and again.
func about(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }

// trace counts what the line says.
func (r *contest) trace() *rlock.Trace {
	return &rlock.Trace{Line: func(e locktrace.Line) {
		switch e.What {
		case locktrace.LineGranted:
			r.granted.Add(1)
		case locktrace.LineCalled:
			r.called.Add(1)
		case locktrace.LineOpen:
			r.open.Add(1)
		}
	}}
}

// join has n sessions more take turns, whose sections take about so long.
func (r *contest) join(n int, inside time.Duration) {
	r.t.Helper()
	for range n {
		r.loop(r.lock(dial(r.t, r.s, rlock.Config{Trace: r.trace()}), r.name), inside, &r.sections)
	}
}

// loop has one goroutine more at it, whose sections n counts.
func (r *contest) loop(m locker, inside time.Duration, n *atomic.Int64) {
	r.wg.Go(func() {
		for r.ctx.Err() == nil {
			_, h, err := m.Lock(r.ctx)
			if err != nil {
				if r.ctx.Err() == nil {
					r.t.Error(err)
				}
				return
			}
			n.Add(1)
			time.Sleep(about(inside)) // the work
			if err := h.Unlock(); err != nil {
				r.t.Error(err)
			}
		}
	})
}

// turns waits for so many sections more.
func (r *contest) turns(n int64) {
	r.t.Helper()
	until := r.sections.Load() + n
	redistest.Eventually(r.t, time.Minute, "turns of the sessions of the contest", func() bool { return r.sections.Load() >= until })
}

// end stops the contest and waits for it.
func (r *contest) end() {
	r.stop()
	r.wg.Wait()
}
