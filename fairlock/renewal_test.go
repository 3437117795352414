package fairlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A renewal that is answered while the section ends that it was for, and before the next one
// begins: that one is renewed too.
func TestARenewalAnsweredBetweenSections(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 10*time.Minute)
		renewed := make(chan error, 100)
		cfg := short(s)
		lease := s.Slowed(1500 * time.Millisecond)
		cfg.Lease, cfg.QueueLease, cfg.PollFloor = lease, 4*lease, lease
		o := fairlock.New(dial(t, s, cfg), "x")
		cfg.Trace = &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed <- e.Err }}
		ses, p := dialProxy(t, s, cfg)
		m := fairlock.New(ses, "x")
		first := granted(t, goLock(ctx, o), patience, "the first")
		slow := &locktest.Stopped{Context: ctx}
		a := goQueued(t, slow, m, 1)
		b := goQueued(t, ctx, m, 2)
		seen, release := p.HoldReply(renews(t))
		unlock(t, first)
		la := granted(t, a, patience, "a")
		la.ctx.Done() // from now on there is something to be cancelled
		locktest.Get(t, seen, patience, "the renewal")
		cancelling := make(chan struct{})
		slow.InDone.Until(cancelling)
		out := make(chan error, 1)
		go func() { out <- la.hold.Unlock() }()
		redistest.Eventually(t, patience, "the section to be cancelled", slow.InDone.Reached)
		release()
		must(t, locktest.Get(t, renewed, patience, "the answer"))
		close(cancelling)
		must(t, locktest.Get(t, out, patience, "Unlock"))
		lb := granted(t, b, patience, "b")
		pause(lease + lease/2)
		if lb.ctx.Err() != nil {
			t.Fatalf("the next section: %v", context.Cause(lb.ctx))
		}
		unlock(t, lb)
	})
}
