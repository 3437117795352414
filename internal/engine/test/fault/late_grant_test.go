package fault_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R2: a grant that is older than its own lease when it arrives is none. Somebody else
// has the lock in between; when that one is done the late one gets it, once.
func faultLate(t *testing.T, cfg rlock.Config, owner string, opts ...rlock.LockOption) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, cfg)
		other := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		lockCtx := ctx
		if owner != "" {
			lockCtx = rlock.WithOwner(ctx, owner)
		}
		name := redistest.Name(t)
		seen, release := p.HoldReply(locktest.Calls(t, "acquire"))
		defer release()
		late := locktest.GoLock(rlock.New(ses, name), lockCtx, opts...)
		locktest.Get(t, seen, 5*time.Second, "the late one's attempt")
		if locktest.Free(t, s, name) {
			t.Fatal("the attempt was not granted")
		}
		_, h, err := rlock.New(other, name).Lock(ctx) // when the lease is over
		must(t, err)
		release()
		// It asks again, and is refused.
		redistest.Eventually(t, 5*time.Second, "another attempt", func() bool { return locktest.CallsSent(t, p, "acquire") >= 2 })
		redistest.Eventually(t, 5*time.Second, "its subscription", func() bool {
			return slices.Contains(s.Channels(t), "redisson_lock__channel:{"+name+"}")
		})
		select {
		case got := <-late:
			t.Fatalf("Lock returned (error %v) while another has the lock", got.Err)
		default:
		}
		if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
			t.Fatalf("the other's count is %q", n)
		}
		must(t, h.Unlock())
		got := locktest.Get(t, late, 10*time.Second, "Lock")
		must(t, got.Err)
		if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, got.Hold.Unlock())
		if !locktest.Free(t, s, name) {
			t.Fatal("not free")
		}
	})
}

func TestFaultGrantLaterThanItsLeaseIsNoSuccess(t *testing.T) {
	faultLate(t, rlock.Config{Lease: 2800 * time.Millisecond}, "")
}

func TestFaultGrantLaterThanItsFixedLeaseIsNoSuccess(t *testing.T) {
	faultLate(t, rlock.Config{}, "", rlock.Lease(2800*time.Millisecond))
}

func TestFaultGrantLaterThanItsLeaseIsNoSuccessForANamedOwner(t *testing.T) {
	faultLate(t, rlock.Config{Lease: 2800 * time.Millisecond}, "order-17")
}

// R2: nobody was in between; the count is right all the same.
func TestFaultLateGrantCountsOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 2800 * time.Millisecond})
		ctx := within(t, 30*time.Second)
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			name := redistest.Name(t)
			seen, release := p.HoldReply(locktest.Calls(t, "acquire"))
			defer release()
			late := locktest.GoLock(rlock.New(ses, name), lockCtx)
			locktest.Get(t, seen, 5*time.Second, "the attempt")
			redistest.Eventually(t, 20*time.Second, "the end of the lease", func() bool { return locktest.Free(t, s, name) })
			release()
			got := locktest.Get(t, late, 5*time.Second, "Lock")
			must(t, got.Err)
			if r := got.Hold.Remaining(); r <= 0 {
				t.Errorf("%v remain of a fresh hold", r)
			}
			if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" {
				t.Fatalf("count %q", n)
			}
			must(t, got.Hold.Unlock())
		}
	})
}

// R2, R8: the grant of a named owner came too late, and the same owner has entered the
// lock elsewhere since. That are two holds, and the first Unlock must not free both.
func TestFaultLateGrantOfANamedOwnerIsNotMistakenForItsNextOne(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 2800 * time.Millisecond})
		other := dial(t, s, rlock.Config{})
		ctx := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		seen, release := p.HoldReply(locktest.Calls(t, "acquire"))
		defer release()
		late := locktest.GoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, seen, 5*time.Second, "the attempt")
		redistest.Eventually(t, 20*time.Second, "the end of the lease", func() bool { return locktest.Free(t, s, name) })
		_, h, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		release()
		got := locktest.Get(t, late, 5*time.Second, "the late Lock")
		must(t, got.Err)
		if n := locktest.Field(t, s, name, "order-17"); n != "2" {
			t.Errorf("two holds, but the count is %q", n)
		}
		must(t, got.Hold.Unlock())
		if n := locktest.Field(t, s, name, "order-17"); n != "1" {
			t.Errorf("one hold is left, but the count is %q", n)
		}
		must(t, h.Unlock())
	})
}
