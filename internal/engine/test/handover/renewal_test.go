package handover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

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
		ctx := &locktest.Stopped{Context: parent}
		section, h, err := m.Lock(ctx)
		must(t, err)
		locktest.Unhurried(ses, "x")
		renewal, cancelling := make(chan struct{}), make(chan struct{})
		ctx.InErr.Until(renewal)
		time.Sleep(11 * time.Second)
		if !ctx.InErr.Reached() {
			t.Fatal("no renewal was due")
		}
		section.Done() // from now on there is something to be cancelled
		next := locktest.GoLock(m, context.Background())
		synctest.Wait()
		ctx.InDone.Until(cancelling)
		unlocked := locktest.Go(h.Unlock)
		synctest.Wait()
		if !ctx.InDone.Reached() {
			t.Fatal("the section was not cancelled")
		}
		close(renewal)
		synctest.Wait()
		close(cancelling)
		must(t, <-unlocked)
		l := <-next
		must(t, l.Err)
		if l.Hold.Owner() != h.Owner() {
			t.Fatal("the lock was not handed over")
		}
		time.Sleep(time.Minute)
		if l.Ctx.Err() != nil {
			t.Errorf("the lock was lost: %v", context.Cause(l.Ctx))
		}
		must(t, l.Hold.Unlock())
	})
}

// As TestHandOverDuringARenewal, but the renewal was sent for the section that ends, and is
// answered before the next one begins.
func TestARenewalAnsweredDuringAHandOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		renewed := make(chan error, 100)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, Trace: &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed <- e.Err }}})
		m, ctx := rlock.New(ses, "x"), &locktest.Stopped{Context: within(t, 10*time.Minute)}
		section, h, err := m.Lock(ctx)
		must(t, err)
		locktest.Unhurried(ses, "x")
		section.Done()
		next := locktest.GoLock(m, context.Background())
		seen, release := p.HoldReply(locktest.Calls(t, "renew"))
		locktest.Get(t, seen, lease, "a renewal")
		cancelling := make(chan struct{})
		ctx.InDone.Until(cancelling)
		unlocked := locktest.Go(h.Unlock)
		redistest.Eventually(t, lease/3, "the section to be cancelled", ctx.InDone.Reached)
		release()
		must(t, locktest.Get(t, renewed, lease, "the answer"))
		close(cancelling)
		must(t, <-unlocked)
		l := <-next
		must(t, l.Err)
		if l.Hold.Owner() != h.Owner() {
			t.Fatal("the lock was not handed over")
		}
		<-time.After(lease + lease/2)
		if l.Ctx.Err() != nil {
			t.Fatalf("the lock was lost: %v", context.Cause(l.Ctx))
		}
		must(t, l.Hold.Unlock())
	})
}
