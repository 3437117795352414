package fault_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R9: the release ran, its reply got lost with the connection, and it is sent again.
// Unlock is a success, and takes away one hold at each level, never two.
func faultReleaseResend(t *testing.T, owner string, fault func(p *faulttest.Proxy, match func([]string) bool), opts ...rlock.LockOption) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		if owner != "" {
			ctx = rlock.WithOwner(ctx, owner)
		}
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section := ctx
		var outermost context.Context // a nested hold with a lease of its own has a section of its own
		var holds []*rlock.Hold
		for range 3 {
			c, h, err := m.Lock(section, opts...)
			must(t, err)
			section, holds = c, append(holds, h)
			if outermost == nil {
				outermost = c
			}
		}
		for left := 2; left >= 0; left-- {
			p.Reset()
			fault(p, locktest.Calls(t, "release"))
			must(t, holds[left].Unlock())
			want := ""
			if left > 0 {
				want = fmt.Sprint(left)
			}
			if n := locktest.Field(t, s, name, holds[left].Owner()); n != want {
				t.Fatalf("%d holds left, but the count is %q", left, n)
			}
			if (outermost.Err() != nil) != (left == 0) {
				t.Fatalf("%d holds left, and the section's end is: %v", left, context.Cause(outermost))
			}
			locktest.Is(t, "second Unlock", holds[left].Unlock(), rlock.ErrNotHeld)
		}
		if !locktest.Free(t, s, name) {
			t.Fatal("not free")
		}
	})
}

func TestFaultLostReplyOfReleaseIsASuccess(t *testing.T) {
	faultReleaseResend(t, "", (*faulttest.Proxy).DropReply)
}

func TestFaultLostReplyOfReleaseIsASuccessWithAFixedLease(t *testing.T) {
	faultReleaseResend(t, "", (*faulttest.Proxy).DropReply, rlock.Lease(20*time.Second))
}

func TestFaultLostReplyOfReleaseIsASuccessForANamedOwner(t *testing.T) {
	faultReleaseResend(t, "order-17", (*faulttest.Proxy).DropReply)
}

func TestFaultLostRequestOfReleaseIsASuccess(t *testing.T) {
	faultReleaseResend(t, "", (*faulttest.Proxy).DropRequest)
}

func TestFaultLostRequestOfReleaseIsASuccessForANamedOwner(t *testing.T) {
	faultReleaseResend(t, "order-17", (*faulttest.Proxy).DropRequest)
}

func TestFaultManyLostRepliesOfReleaseAreASuccess(t *testing.T) {
	faultReleaseResend(t, "", func(p *faulttest.Proxy, match func([]string) bool) {
		for range 3 {
			p.DropReply(match)
		}
	})
}

// R9: while the reply of the release is on its way a successor gets in. The resend must
// not touch it.
func faultDuplicateRelease(t *testing.T, owner, successor string) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		lockCtx, nextCtx := ctx, ctx
		if owner != "" {
			lockCtx = rlock.WithOwner(ctx, owner)
		}
		if successor != "" {
			nextCtx = rlock.WithOwner(ctx, successor)
		}
		name := redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(lockCtx)
		must(t, err)
		seen, release := p.HoldReply(locktest.Calls(t, "release"))
		defer release()
		unlocked := locktest.Go(h.Unlock)
		locktest.Get(t, seen, 5*time.Second, "the release")
		section, next, err := rlock.New(other, name).TryLock(nextCtx)
		must(t, err)
		p.Cut()
		must(t, locktest.Get(t, unlocked, 5*time.Second, "Unlock"))
		if n := locktest.CallsSent(t, p, "release"); n < 2 {
			t.Fatalf("the release was sent %d times; this test is about two", n)
		}
		locktest.Is(t, "second Unlock", h.Unlock(), rlock.ErrNotHeld)
		if n := locktest.Field(t, s, name, next.Owner()); n != "1" || section.Err() != nil {
			t.Fatalf("the successor's count is %q, its section's end %v", n, section.Err())
		}
		must(t, next.Unlock())
	})
}

func TestFaultDuplicateReleaseLeavesTheSuccessor(t *testing.T) { faultDuplicateRelease(t, "", "") }

func TestFaultDuplicateReleaseOfANamedOwnerLeavesTheSuccessor(t *testing.T) {
	faultDuplicateRelease(t, "order-17", "order-18")
}

func TestFaultDuplicateReleaseOfANamedOwnerLeavesItsNextHold(t *testing.T) {
	faultDuplicateRelease(t, "order-17", "order-17")
}

// R9: a release that arrives only when the lease is over, and the name has a new owner.
func TestFaultReleaseLaterThanTheLeaseLeavesTheSuccessor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 2800 * time.Millisecond})
		other := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		seen, release := p.HoldRequest(locktest.Calls(t, "release"))
		defer release()
		unlocked := locktest.Go(h.Unlock)
		locktest.Get(t, seen, 5*time.Second, "the release")
		section, next, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		release()
		// The release found another owner: the lock was lost before it ran.
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, 5*time.Second, "Unlock"), rlock.ErrLost)
		if n := locktest.Field(t, s, name, next.Owner()); n != "1" || section.Err() != nil {
			t.Fatalf("the successor's count is %q, its section's end %v", n, section.Err())
		}
		must(t, next.Unlock())
	})
}

// R9: a named owner lost its lock, since the network was cut for a lease, and has
// entered it anew in another session. What the first session does to clean up must not
// take that hold away: its holder would go on believing in it.
func TestFaultCleanUpOfALostNamedHoldLeavesItsNextOne(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 900 * time.Millisecond
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		other := dial(t, s, rlock.Config{})
		ctx := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		p.Refuse(true)
		locktest.Ends(t, section, lease+s.Slack(), rlock.ErrLost)
		redistest.Eventually(t, lease+s.Slack(), "the lease is over", func() bool { return locktest.Free(t, s, name) })
		next, h2, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		p.Refuse(false)
		for end := time.Now().Add(lease); time.Now().Before(end); {
			locktest.Stays(t, next, 10*time.Millisecond)
			if n := locktest.Field(t, s, name, "order-17"); n != "1" {
				t.Fatalf("the next hold's count is %q", n)
			}
		}
		must(t, h2.Unlock())
	})
}
