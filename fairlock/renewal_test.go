package fairlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A slowEnd is a caller's context whose children take their time to be cancelled.
type slowEnd struct {
	context.Context
	done    chan struct{}
	stopped chan struct{}
	goOn    chan struct{}
	armed   atomic.Bool
}

func (c *slowEnd) Done() <-chan struct{} { return c.done }
func (c *slowEnd) AfterFunc(func()) func() bool {
	return func() bool {
		if c.armed.CompareAndSwap(true, false) {
			close(c.stopped)
			<-c.goOn
		}
		return true
	}
}

// A renewal that is answered while the section ends that it was for, and before the next one
// begins: that one is renewed too.
func TestARenewalAnsweredBetweenSections(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 10*time.Minute)
		renewed := make(chan error, 100)
		cfg := short(s)
		cfg.Lease, cfg.QueueLease, cfg.PollFloor = 3*time.Second, 12*time.Second, 3*time.Second
		o := fairlock.New(dial(t, s, cfg), "x")
		cfg.Trace = &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed <- e.Err }}
		ses, p := dialProxy(t, s, cfg)
		m := fairlock.New(ses, "x")
		first := granted(t, goLock(ctx, o), patience, "the first")
		slow := &slowEnd{Context: ctx, done: make(chan struct{}), stopped: make(chan struct{}), goOn: make(chan struct{})}
		a := goQueued(t, slow, m, 1)
		b := goQueued(t, ctx, m, 2)
		seen, release := p.HoldReply(renews(t))
		unlock(t, first)
		la := granted(t, a, patience, "a")
		locktest.Get(t, seen, patience, "the renewal")
		slow.armed.Store(true)
		out := make(chan error, 1)
		go func() { out <- la.hold.Unlock() }()
		locktest.Get(t, slow.stopped, patience, "the cancelling")
		release()
		must(t, locktest.Get(t, renewed, patience, "the answer"))
		close(slow.goOn)
		must(t, locktest.Get(t, out, patience, "Unlock"))
		lb := granted(t, b, patience, "b")
		pause(cfg.Lease + cfg.Lease/2)
		if lb.ctx.Err() != nil {
			t.Fatalf("the next section: %v", context.Cause(lb.ctx))
		}
		unlock(t, lb)
	})
}
