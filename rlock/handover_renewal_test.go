package rlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A stopped context is one of the caller's own that waits, once it is told to, where it is asked
// whether it has ended, and where a context that was made of it is cancelled.
type stoppedContext struct {
	context.Context
	inErr, inDone atomic.Pointer[chan struct{}]
}

func stopAt(at *atomic.Pointer[chan struct{}]) {
	if c := at.Swap(nil); c != nil {
		<-*c
	}
}

func (c *stoppedContext) Err() error {
	stopAt(&c.inErr)
	return c.Context.Err()
}

func (c *stoppedContext) Done() <-chan struct{} {
	stopAt(&c.inDone)
	return c.Context.Done()
}

// A lock is handed over while it is renewed: the session asks whether the section wants that, the
// section ends, and the renewal finds none. What the next one is given is renewed.
func TestHandOverDuringARenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true)
		defer server.Close()
		ses := locktest.DialBubble(t, server, rlock.Config{Lease: 30 * time.Second})
		defer ses.Close()
		m := rlock.New(ses, "x")
		parent, end := context.WithCancel(context.Background())
		defer end()
		ctx := &stoppedContext{Context: parent}
		section, h, err := m.Lock(ctx)
		must(t, err)
		ses.Unhurried("x")
		renewal, cancelling := make(chan struct{}), make(chan struct{})
		ctx.inErr.Store(&renewal)
		time.Sleep(11 * time.Second)
		if ctx.inErr.Load() != nil {
			t.Fatal("no renewal was due")
		}
		section.Done() // from now on there is something to be cancelled
		next := faultGoLock(m, context.Background())
		synctest.Wait()
		ctx.inDone.Store(&cancelling)
		unlocked := faultGo(h.Unlock)
		synctest.Wait()
		if ctx.inDone.Load() != nil {
			t.Fatal("the section was not cancelled")
		}
		close(renewal)
		synctest.Wait()
		close(cancelling)
		must(t, <-unlocked)
		l := <-next
		must(t, l.err)
		if l.hold.Owner() != h.Owner() {
			t.Fatal("the lock was not handed over")
		}
		time.Sleep(time.Minute)
		if l.ctx.Err() != nil {
			t.Errorf("the lock was lost: %v", context.Cause(l.ctx))
		}
		must(t, l.hold.Unlock())
	})
}

// As TestHandOverDuringARenewal, but the renewal was sent for the section that ends, and is
// answered before the next one begins.
func TestARenewalAnsweredDuringAHandOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 3 * time.Second
		renewed := make(chan error, 100)
		ses, p := faultDial(t, s, rlock.Config{Lease: lease, Trace: &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed <- e.Err }}})
		m, ctx := rlock.New(ses, "x"), &stoppedContext{Context: within(t, 10*time.Minute)}
		section, h, err := m.Lock(ctx)
		must(t, err)
		ses.Unhurried("x")
		section.Done()
		next := faultGoLock(m, context.Background())
		seen, release := p.HoldReply(faultRuns(t, "renew"))
		locktest.Get(t, seen, lease, "a renewal")
		cancelling := make(chan struct{})
		ctx.inDone.Store(&cancelling)
		unlocked := faultGo(h.Unlock)
		redistest.Eventually(t, lease/3, "the section to be cancelled", func() bool { return ctx.inDone.Load() == nil })
		release()
		must(t, locktest.Get(t, renewed, lease, "the answer"))
		close(cancelling)
		must(t, <-unlocked)
		l := <-next
		must(t, l.err)
		if l.hold.Owner() != h.Owner() {
			t.Fatal("the lock was not handed over")
		}
		<-time.After(lease + lease/2)
		if l.ctx.Err() != nil {
			t.Fatalf("the lock was lost: %v", context.Cause(l.ctx))
		}
		must(t, l.hold.Unlock())
	})
}
