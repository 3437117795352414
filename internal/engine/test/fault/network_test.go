package fault_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R1 with the network cut: the section ends by the clock, and before anybody else gets
// in. The margin between the two is 5 % of the lease.
func faultBlackHoled(t *testing.T, fixed bool) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease, opts := s.Slowed(2*time.Second), []rlock.LockOption{}
		if fixed {
			opts = append(opts, rlock.Lease(lease))
		}
		stalls := locktest.WatchStalls(t)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, ReleaseTimeout: 500 * time.Millisecond})
		other := dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(ctx, opts...)
		must(t, err)
		ended := make(chan time.Time, 1)
		context.AfterFunc(section, func() { ended <- time.Now() })
		next := locktest.GoLock(rlock.New(other, name), ctx)
		if !fixed {
			// Have it renewed at least once: trust moves with the renewals.
			redistest.Eventually(t, lease, "a renewal", func() bool { return locktest.CallsSent(t, p, "renew") >= 1 })
		}
		p.BlackHole(true)
		from := time.Now() // the last renewal was sent before

		got := locktest.Get(t, next, lease+20*time.Second, "the other client's Lock")
		if section.Err() == nil && stalls.Longest() < lease/100 {
			t.Error("another client has the lock while the section goes on")
		}
		must(t, got.Err)
		locktest.Ends(t, section, s.Slack(), rlock.ErrLost)
		if d := locktest.Get(t, ended, s.Slack(), "the end").Sub(from); d > lease && stalls.Longest() < lease/100 {
			t.Errorf("the section ended %v after the network was cut; the lease is %v", d, lease)
		}
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		p.BlackHole(false)

		// What was on its way, and the loser's own clean-up, touch nobody else.
		locktest.Stays(t, got.Ctx, 700*time.Millisecond)
		if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" {
			t.Errorf("the successor's count is %q", n)
		}
		must(t, got.Hold.Unlock())
	})
}

func TestFaultCutNetworkEndsTheSectionBeforeAnotherGetsIn(t *testing.T) { faultBlackHoled(t, false) }

func TestFaultCutNetworkEndsASectionWithAFixedLease(t *testing.T) { faultBlackHoled(t, true) }

// R1: a lock that could not be renewed because the holder's process is cut off, with a
// nested hold, and with the ErrLost of both.
func TestFaultRefusedNetworkEndsTheSectionInTime(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, ReleaseTimeout: 500 * time.Millisecond})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(within(t, 20*time.Second))
		must(t, err)
		inner, h2, err := m.Lock(section)
		must(t, err)
		p.Refuse(true)
		locktest.Ends(t, section, lease*19/20+s.Slack(), rlock.ErrLost)
		locktest.Ends(t, inner, s.Slack(), rlock.ErrLost)
		locktest.Is(t, "Unlock of the inner hold", h2.Unlock(), rlock.ErrLost)
		locktest.Is(t, "Unlock of the outer hold", h.Unlock(), rlock.ErrLost)
		p.Refuse(false)
		redistest.Eventually(t, lease+s.Slack(), "the lock is free", func() bool { return locktest.Free(t, s, name) })
	})
}

// R10: a stall of half a lease costs nothing, also when it begins at the worst time,
// with a renewal just sent.
func TestFaultStalledNetworkKeepsTheLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(3 * time.Second)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(within(t, 90*time.Second))
		must(t, err)
		seen, release := p.HoldRequest(locktest.Calls(t, "renew"))
		defer release()
		locktest.Get(t, seen, lease, "a renewal")
		p.BlackHole(true)
		release()
		locktest.Stays(t, section, lease/2)
		p.BlackHole(false)
		locktest.Stays(t, section, lease)
		if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, h.Unlock())
		if !locktest.Free(t, s, name) {
			t.Fatal("not free")
		}
	})
}

func TestFaultStalledServerKeepsTheLock(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		if !s.CanPause() {
			t.Skip("miniredis cannot be paused")
		}
		redistest.SkipShort(t)
		lease := s.Slowed(3 * time.Second)
		ses := dial(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(within(t, 90*time.Second))
		must(t, err)
		for range 2 {
			s.Pause()
			locktest.Stays(t, section, lease/2)
			s.Resume()
			locktest.Stays(t, section, lease/2)
		}
		if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, h.Unlock())
	})
}
