package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/election"
	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A leadership that is lost ends with its cause, and cannot publish any more.
func TestLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b := dial(t, s, slow()), dial(t, s, slow())
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		second := campaign(t, ctx, b, "b", 1)
		if ok, err := fairlock.New(b, "x").ForceUnlock(ctx); !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		ends(t, first.section, patience, rlock.ErrLost)
		is(t, "Publish", first.l.Publish(ctx, "late"), rlock.ErrLost)
		e := leads(t, second, 2)
		is(t, "Publish", first.l.Publish(ctx, "late"), rlock.ErrLost)
		sees(t, ctx, a, 2, "b")
		is(t, "Resign", first.l.Resign(), rlock.ErrLost)
		sees(t, ctx, a, 2, "b")
		must(t, b.Close())
		ends(t, e.section, patience, rlock.ErrClosed)
		is(t, "Publish", e.l.Publish(ctx, "late"), rlock.ErrClosed)
	})
}

// What is published by a leader that has just lost its lock to a flush begins anew.
func TestLostBeforePublished(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		ses, p := locktest.DialProxy(t, s, slow())
		seen, release := p.HoldRequest(locktest.Runs(src["publish"]))
		c := campaign(t, ctx, ses, "a", 0)
		locktest.Get(t, seen, patience, "the value to be sent")
		if ok, err := fairlock.New(dial(t, s, slow()), "x").ForceUnlock(ctx); !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		release()
		e := leads(t, c, 2)
		sees(t, ctx, ses, 2, "a")
		must(t, e.l.Resign())
	})
}

// A leader that goes silent is followed within a lease and a heartbeat, and not before its own
// context has ended.
func TestCrash(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease, stalls := s.Slowed(time.Second), locktest.WatchStalls(t)
		ctx := within(t, time.Minute)
		cfg := rlock.Config{Lease: lease, QueueLease: lease}
		cut, proxy := locktest.DialProxy(t, s, cfg)
		other := dial(t, s, cfg)
		first := leads(t, campaign(t, ctx, cut, "a", 0), 1)
		var ended atomic.Int64
		context.AfterFunc(first.section, func() { ended.Store(time.Now().UnixNano()) })
		second := campaign(t, ctx, other, "b", 1)
		proxy.BlackHole(true)
		died := time.Now()
		leads(t, second, 2)
		now := time.Now()
		if took := now.Sub(died); took > lease+lease/5+s.Slack() {
			t.Errorf("the next leader came after %v", took)
		}
		if at := ended.Load(); (at == 0 || at > now.UnixNano()) && stalls.Longest() < lease/100 {
			t.Error("the next one leads, and the context of the first one has not ended")
		}
		sees(t, ctx, other, 2, "b")
	})
}

// The answer to a value is lost, or the value itself: it is published all the same, and once
// sent again does not replace a later one.
func TestFaultLostValues(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, p := locktest.DialProxy(t, s, slow())
		publish := locktest.Runs(src["publish"])
		p.DropReply(publish)
		e := leads(t, campaign(t, ctx, ses, "a", 0), 1)
		sees(t, ctx, ses, 1, "a")
		p.DropRequest(publish)
		must(t, e.l.Publish(ctx, "a2"))
		sees(t, ctx, ses, 1, "a2")
		seen, release := p.HoldRequest(publish)
		older := make(chan error, 1)
		go func() { older <- e.l.Publish(ctx, "older") }()
		locktest.Get(t, seen, patience, "the older value to be sent")
		p.Cut() // it is sent again, on another connection, behind the later one
		must(t, e.l.Publish(ctx, "later"))
		release()
		must(t, locktest.Get(t, older, patience, "the older value's answer"))
		sees(t, ctx, ses, 1, "later")
	})
}

// Campaign waits through an outage that begins when it has the lock already, as it does through any
// other; with Wait until that is over.
func TestOutageBeforePublished(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		cfg := slow()
		cfg.ReleaseTimeout = s.Slowed(100 * time.Millisecond)
		for what, opts := range map[string][]rlock.LockOption{"without Wait": nil, "with Wait": {rlock.Wait(time.Second)}} {
			ses, p := locktest.DialProxy(t, s, cfg)
			seen, release := p.HoldRequest(locktest.Runs(src["publish"]))
			c := make(chan elected, 1)
			go func() {
				section, l, err := election.New(ses, what).Campaign(ctx, "a", opts...)
				c <- elected{section, l, err}
			}()
			locktest.Get(t, seen, patience, "the value to be sent")
			p.BlackHole(true)
			release()
			if opts != nil {
				e := locktest.Get(t, c, patience, "the end of Wait")
				is(t, what, e.err, rlock.ErrNotAcquired, rlock.ErrUnavailable)
				p.BlackHole(false)
				continue
			}
			time.Sleep(5 * cfg.ReleaseTimeout)
			waits(t, c)
			p.BlackHole(false)
			leads(t, c, 1)
		}
	})
}

// A leadership that is lost before its value is published leaves the next attempt what is left of
// Wait, and not all of it.
func TestLostBeforePublishedAndWaitIsOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, p := locktest.DialProxy(t, s, slow())
		seen, release := p.HoldRequest(locktest.Runs(src["publish"]))
		c := make(chan error, 1)
		go func() {
			_, _, err := election.New(ses, "x").Campaign(ctx, "a", rlock.Wait(time.Second))
			c <- err
		}()
		locktest.Get(t, seen, patience, "the value to be sent")
		time.Sleep(time.Second)
		if ok, err := fairlock.New(dial(t, s, slow()), "x").ForceUnlock(ctx); !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		release()
		is(t, "Campaign", locktest.Get(t, c, patience, "Campaign to return"), rlock.ErrNotAcquired)
	})
}

// A ctx that ends after a leadership was lost has ended a wait, even if that happens in the pause before
// the next attempt.
func TestCtxEndsAfterLostBeforePublished(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, slow())
		publish := locktest.Runs(src["publish"])
		seen, release := p.HoldRequest(publish)
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		c := make(chan elected, 1)
		go func() {
			section, l, err := election.New(ses, "x").Campaign(ctx, "a")
			c <- elected{section, l, err}
		}()
		locktest.Get(t, seen, patience, "the value to be sent")
		if ok, err := fairlock.New(dial(t, s, slow()), "x").ForceUnlock(ctx); !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		_, again := p.HoldRequest(publish) // so that it does not lead if the pause is over too early
		defer again()
		release()
		time.Sleep(time.Millisecond) // by a made-up clock it is in the pause then
		cancel()
		e := locktest.Get(t, c, patience, "Campaign to return")
		is(t, "Campaign", e.err, rlock.ErrNotAcquired, context.Canceled)
		if e.l != nil || e.section != ctx {
			t.Errorf("Campaign: %v, %v, %v", e.section, e.l, e.err)
		}
	})
}

// With AtLeast a leadership stands when its value is published; the lock of a Campaign that ends before is free.
func TestAtLeastStandsWhenPublished(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, slow())
		other := fairlock.New(dial(t, s, slow()), "x")
		seen, release := p.HoldRequest(locktest.Runs(src["publish"]))
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		c := make(chan error, 1)
		go func() {
			_, _, err := election.New(ses, "x").Campaign(ctx, "a", rlock.AtLeast(time.Hour))
			c <- err
		}()
		locktest.Get(t, seen, patience, "the value to be sent")
		p.BlackHole(true)
		cancel()
		release()
		is(t, "Campaign", locktest.Get(t, c, patience, "Campaign to return"), rlock.ErrNotAcquired, context.Canceled)
		p.BlackHole(false)
		_, h, err := other.Lock(within(t, patience))
		must(t, err)
		must(t, h.Unlock())

		_, l, err := election.New(ses, "x").Campaign(within(t, patience), "a", rlock.AtLeast(time.Hour))
		must(t, err)
		must(t, l.Resign())
		_, _, err = other.TryLock(within(t, patience))
		is(t, "the lock of one that has resigned", err, rlock.ErrNotAcquired)
	})
}
