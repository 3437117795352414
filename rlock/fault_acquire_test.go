package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R2: a grant that is older than its own lease when it arrives is none. Somebody else
// has the lock in between; when that one is done the late one gets it, once.
func faultLate(t *testing.T, cfg rlock.Config, owner string, opts ...rlock.LockOption) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, cfg)
		other := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		lockCtx := ctx
		if owner != "" {
			lockCtx = rlock.WithOwner(ctx, owner)
		}
		name := redistest.Name(t)
		seen, release := p.HoldReply(faultRuns(t, "acquire"))
		defer release()
		late := faultGoLock(rlock.New(ses, name), lockCtx, opts...)
		locktest.Get(t, seen, 5*time.Second, "the late one's attempt")
		if faultFree(t, s, name) {
			t.Fatal("the attempt was not granted")
		}
		_, h, err := rlock.New(other, name).Lock(ctx) // when the lease is over
		must(t, err)
		release()
		// It asks again, and is refused.
		redistest.Eventually(t, 5*time.Second, "another attempt", func() bool { return faultSent(t, p, "acquire") >= 2 })
		redistest.Eventually(t, 5*time.Second, "its subscription", func() bool {
			return slices.Contains(s.Channels(t), "redisson_lock__channel:{"+name+"}")
		})
		select {
		case got := <-late:
			t.Fatalf("Lock returned (error %v) while another has the lock", got.err)
		default:
		}
		if n := faultCount(t, s, name, h.Owner()); n != "1" {
			t.Fatalf("the other's count is %q", n)
		}
		must(t, h.Unlock())
		got := locktest.Get(t, late, 10*time.Second, "Lock")
		must(t, got.err)
		if n := faultCount(t, s, name, got.hold.Owner()); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, got.hold.Unlock())
		if !faultFree(t, s, name) {
			t.Fatal("not free")
		}
	})
}

func TestFaultGrantLaterThanItsLeaseIsNoSuccess(t *testing.T) {
	faultLate(t, rlock.Config{Lease: 700 * time.Millisecond}, "")
}

func TestFaultGrantLaterThanItsFixedLeaseIsNoSuccess(t *testing.T) {
	faultLate(t, rlock.Config{}, "", rlock.Lease(700*time.Millisecond))
}

func TestFaultGrantLaterThanItsLeaseIsNoSuccessForANamedOwner(t *testing.T) {
	faultLate(t, rlock.Config{Lease: 700 * time.Millisecond}, "order-17")
}

// R2: nobody was in between; the count is right all the same.
func TestFaultLateGrantCountsOnce(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{Lease: 700 * time.Millisecond})
		ctx := within(t, 30*time.Second)
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			name := redistest.Name(t)
			seen, release := p.HoldReply(faultRuns(t, "acquire"))
			defer release()
			late := faultGoLock(rlock.New(ses, name), lockCtx)
			locktest.Get(t, seen, 5*time.Second, "the attempt")
			redistest.Eventually(t, 5*time.Second, "the end of the lease", func() bool { return faultFree(t, s, name) })
			release()
			got := locktest.Get(t, late, 5*time.Second, "Lock")
			must(t, got.err)
			if r := got.hold.Remaining(); r <= 0 {
				t.Errorf("%v remain of a fresh hold", r)
			}
			if n := faultCount(t, s, name, got.hold.Owner()); n != "1" {
				t.Fatalf("count %q", n)
			}
			must(t, got.hold.Unlock())
		}
	})
}

// R2, R8: the grant of a named owner came too late, and the same owner has entered the
// lock elsewhere since. That are two holds, and the first Unlock must not free both.
func TestFaultLateGrantOfANamedOwnerIsNotMistakenForItsNextOne(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{Lease: 700 * time.Millisecond})
		other := dial(t, s, rlock.Config{})
		ctx := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		seen, release := p.HoldReply(faultRuns(t, "acquire"))
		defer release()
		late := faultGoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, seen, 5*time.Second, "the attempt")
		redistest.Eventually(t, 5*time.Second, "the end of the lease", func() bool { return faultFree(t, s, name) })
		_, h, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		release()
		got := locktest.Get(t, late, 5*time.Second, "the late Lock")
		must(t, got.err)
		if n := faultCount(t, s, name, "order-17"); n != "2" {
			t.Errorf("two holds, but the count is %q", n)
		}
		must(t, got.hold.Unlock())
		if n := faultCount(t, s, name, "order-17"); n != "1" {
			t.Errorf("one hold is left, but the count is %q", n)
		}
		must(t, h.Unlock())
	})
}

// R7: ctx ends while the acquire is in flight. Lock says so at once, and nothing is
// held, although the attempt was or is going to be granted.
type faultFlight struct {
	owner         string // of WithOwner
	nested        bool
	request       bool // hold the request, not the reply
	try           bool
	deadline      bool // not a cancel
	viaWait       bool // not the context: Wait
	fenced        bool
	differentPath bool // nested through another context than the section's
}

func (f faultFlight) run(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		base := within(t, 30*time.Second)
		if f.owner != "" {
			base = rlock.WithOwner(base, f.owner)
		}
		name := redistest.Name(t)
		var mopts []rlock.MutexOption
		if f.fenced {
			mopts = append(mopts, rlock.Fenced())
		}
		m := rlock.New(ses, name, mopts...)
		section, want := base, ""
		var outer *rlock.Hold
		if f.nested {
			var err error
			section, outer, err = m.Lock(base)
			must(t, err)
			want = "1"
		}
		from := section
		if f.differentPath {
			from = base
		}
		owner := func() string { // the one that is looked at in Redis
			if outer != nil {
				return outer.Owner()
			}
			return f.owner
		}

		hold := p.HoldReply
		if f.request {
			hold = p.HoldRequest
		}
		seen, release := hold(faultRuns(t, "acquire"))
		defer release()
		ctx, cancel := context.WithCancel(from)
		wantErr := []error{rlock.ErrNotAcquired, context.Canceled}
		var opts []rlock.LockOption
		switch {
		case f.deadline:
			ctx, cancel = context.WithTimeout(from, 300*time.Millisecond)
			wantErr[1] = context.DeadlineExceeded
		case f.viaWait:
			opts = append(opts, rlock.Wait(300*time.Millisecond))
			wantErr = wantErr[:1]
		}
		defer cancel()
		lock := m.Lock
		if f.try {
			lock = m.TryLock
		}
		locked := make(chan faultLocked, 1)
		go func() {
			c, h, err := lock(ctx, opts...)
			locked <- faultLocked{ctx: c, hold: h, err: err}
		}()
		locktest.Get(t, seen, 5*time.Second, "the attempt")
		if !f.deadline && !f.viaWait {
			cancel()
		}
		got := locktest.Get(t, locked, 2*time.Second, "Lock")
		locktest.Is(t, "Lock", got.err, wantErr...)
		if got.hold != nil || got.ctx != ctx {
			t.Errorf("a failed Lock returned hold %v, and a context other than its own: %v", got.hold, got.ctx != ctx)
		}

		right := func() bool {
			if n := faultCount(t, s, name, owner()); owner() != "" && n != want {
				return false
			}
			if f.nested {
				return faultOwners(t, s, name) == 1
			}
			return faultFree(t, s, name)
		}
		if f.request {
			release()
			// State comes behind all that was held back, and behind what undoes it.
			redistest.Eventually(t, time.Second, "the undo", func() bool {
				return faultSent(t, p, "release") >= 1
			})
			_, err := m.State(base)
			must(t, err)
			if !right() {
				t.Fatalf("the hash is wrong: owner %q has %q, %d owners", owner(), faultCount(t, s, name, owner()), faultOwners(t, s, name))
			}
		} else {
			redistest.Eventually(t, time.Second, "the right count", right)
			release()
		}
		if f.nested {
			if section.Err() != nil {
				t.Fatalf("the outer section ended: %v", context.Cause(section))
			}
			// It is as if the nested Lock had never been.
			_, h, err := m.Lock(section)
			must(t, err)
			if n := faultCount(t, s, name, owner()); n != "2" {
				t.Fatalf("count %q after another nested Lock", n)
			}
			must(t, h.Unlock())
			if n := faultCount(t, s, name, owner()); n != "1" {
				t.Fatalf("count %q after its Unlock", n)
			}
			must(t, outer.Unlock())
		}
		if !faultFree(t, s, name) {
			t.Fatal("not free")
		}
		// And the name is good for another.
		_, h, err := m.TryLock(within(t, 5*time.Second))
		must(t, err)
		must(t, h.Unlock())
	})
}

func TestFaultCancelledAcquireLeavesNothingReplyHeld(t *testing.T) { faultFlight{}.run(t) }

func TestFaultCancelledAcquireLeavesNothingRequestHeld(t *testing.T) {
	faultFlight{request: true}.run(t)
}

func TestFaultCancelledTryLockLeavesNothingReplyHeld(t *testing.T) { faultFlight{try: true}.run(t) }

func TestFaultCancelledTryLockLeavesNothingRequestHeld(t *testing.T) {
	faultFlight{try: true, request: true, fenced: true}.run(t)
}

func TestFaultDeadlineDuringAcquireLeavesNothing(t *testing.T) { faultFlight{deadline: true}.run(t) }

func TestFaultWaitOverDuringAcquireLeavesNothing(t *testing.T) { faultFlight{viaWait: true}.run(t) }

func TestFaultCancelledNestedAcquireGivesTheCountBackReplyHeld(t *testing.T) {
	faultFlight{nested: true}.run(t)
}

func TestFaultCancelledNestedAcquireGivesTheCountBackRequestHeld(t *testing.T) {
	faultFlight{nested: true, request: true}.run(t)
}

func TestFaultWaitOverDuringNestedAcquireGivesTheCountBack(t *testing.T) {
	faultFlight{nested: true, viaWait: true, fenced: true}.run(t)
}

func TestFaultCancelledAcquireOfANamedOwnerLeavesNothingReplyHeld(t *testing.T) {
	faultFlight{owner: "order-17"}.run(t)
}

func TestFaultCancelledAcquireOfANamedOwnerLeavesNothingRequestHeld(t *testing.T) {
	faultFlight{owner: "order-17", request: true}.run(t)
}

func TestFaultCancelledNestedAcquireOfANamedOwnerGivesTheCountBackReplyHeld(t *testing.T) {
	faultFlight{owner: "order-17", nested: true}.run(t)
}

func TestFaultCancelledNestedAcquireOfANamedOwnerGivesTheCountBackRequestHeld(t *testing.T) {
	faultFlight{owner: "order-17", nested: true, request: true, differentPath: true}.run(t)
}

// R7: the owner has the lock in another session meanwhile. Only the cancelled one's
// hold is taken back.
func TestFaultCancelledAcquireOfANamedOwnerLeavesItsOtherHolds(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		base := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		_, elsewhere, err := rlock.New(other, name).Lock(base)
		must(t, err)
		seen, release := p.HoldReply(faultRuns(t, "acquire"))
		defer release()
		ctx, cancel := context.WithCancel(base)
		defer cancel()
		locked := faultGoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, seen, 5*time.Second, "the attempt")
		if n := faultCount(t, s, name, "order-17"); n != "2" {
			t.Fatalf("count %q", n)
		}
		cancel()
		got := locktest.Get(t, locked, 2*time.Second, "Lock")
		locktest.Is(t, "Lock", got.err, rlock.ErrNotAcquired, context.Canceled)
		redistest.Eventually(t, time.Second, "one hold is left", func() bool { return faultCount(t, s, name, "order-17") == "1" })
		release()
		must(t, elsewhere.Unlock())
		if !faultFree(t, s, name) {
			t.Fatal("not free")
		}
	})
}

// R7: a ctx that was done before the call: its own error, and not a byte is sent.
func TestFaultLockOnADoneContextSendsNothing(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(within(t, 20*time.Second))
		must(t, err)
		done, cancel := context.WithCancel(context.Background())
		cancel()
		nested, cancel := context.WithCancel(section)
		cancel()
		late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		cancel()
		p.Reset()
		for _, c := range []struct {
			ctx  context.Context
			want error
		}{
			{done, context.Canceled}, {nested, context.Canceled}, {late, context.DeadlineExceeded},
			{rlock.WithOwner(done, "order-17"), context.Canceled},
		} {
			for _, lock := range []func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error){m.Lock, m.TryLock} {
				ctx, h, err := lock(c.ctx)
				locktest.Is(t, "Lock", err, c.want)
				if errors.Is(err, rlock.ErrNotAcquired) {
					t.Errorf("%v matches ErrNotAcquired too: nothing was tried", err)
				}
				if h != nil || ctx != c.ctx {
					t.Errorf("hold %v, the same context: %v", h, ctx == c.ctx)
				}
			}
			locktest.Is(t, "Do", m.Do(c.ctx, func(context.Context) error { t.Error("Do ran fn"); return nil }), c.want)
			_, err := m.State(c.ctx)
			locktest.Is(t, "State", err, c.want)
			_, err = m.ForceUnlock(c.ctx)
			locktest.Is(t, "ForceUnlock", err, c.want)
		}
		if n := p.Count(); n != 0 {
			t.Errorf("%d commands were sent: %q", n, p.Log())
		}
		must(t, h.Unlock())
	})
}

// R8: the attempt ran, its reply got lost with the connection, and it is sent again.
// That is one hold.
type faultResend struct {
	owner  string
	try    bool
	fixed  bool
	fenced bool
	// fault strikes the next acquire.
	fault func(p *faulttest.Proxy, match func([]string) bool)
}

func (f faultResend) run(t *testing.T) {
	if f.fault == nil {
		f.fault = (*faulttest.Proxy).DropReply
	}
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		if f.owner != "" {
			ctx = rlock.WithOwner(ctx, f.owner)
		}
		name := redistest.Name(t)
		var mopts []rlock.MutexOption
		if f.fenced {
			mopts = append(mopts, rlock.Fenced())
		}
		var opts []rlock.LockOption
		if f.fixed {
			opts = append(opts, rlock.Lease(20*time.Second))
		}
		m := rlock.New(ses, name, mopts...)
		lock := m.Lock
		if f.try {
			lock = m.TryLock
		}
		token := int64(0)
		for round := range 3 {
			var holds []*rlock.Hold
			section := ctx
			for depth := 1; depth <= 3; depth++ {
				p.Reset()
				f.fault(p, faultRuns(t, "acquire"))
				c, h, err := lock(section, opts...)
				must(t, err)
				section, holds = c, append(holds, h)
				if n := faultSent(t, p, "acquire"); n > 2 {
					t.Errorf("%d attempts", n)
				}
				if n := faultCount(t, s, name, h.Owner()); n != fmt.Sprint(depth) {
					t.Fatalf("round %d: %d holds, but the count is %q", round, depth, n)
				}
				if n := faultOwners(t, s, name); n != 1 {
					t.Fatalf("round %d: %d owners", round, n)
				}
				if !f.fenced {
					continue
				}
				if depth == 1 && h.Token() <= token {
					t.Errorf("round %d: token %d after %d", round, h.Token(), token)
				}
				if depth > 1 && h.Token() != token {
					t.Errorf("round %d: token %d in a nested hold, %d in the outer", round, h.Token(), token)
				}
				token = h.Token()
				if n, err := s.Do(t, "GET", "redisson_lock_token:{"+name+"}").AsInt64(); err != nil || n != token {
					t.Errorf("token %d, Redis has %d (%v)", token, n, err)
				}
			}
			for i := len(holds) - 1; i >= 0; i-- {
				must(t, holds[i].Unlock())
				want := ""
				if i > 0 {
					want = fmt.Sprint(i)
				}
				if n := faultCount(t, s, name, holds[i].Owner()); n != want {
					t.Fatalf("round %d: %d holds left, but the count is %q", round, i, n)
				}
			}
		}
	})
}

func TestFaultLostReplyOfAcquireCountsOnce(t *testing.T) { faultResend{}.run(t) }

func TestFaultLostReplyOfTryLockCountsOnce(t *testing.T) { faultResend{try: true}.run(t) }

func TestFaultLostReplyOfFixedLeaseCountsOnce(t *testing.T) { faultResend{fixed: true}.run(t) }

func TestFaultLostReplyOfFencedAcquireCountsOnceWithOneToken(t *testing.T) {
	faultResend{fenced: true}.run(t)
}

func TestFaultLostReplyOfNamedOwnerCountsOnce(t *testing.T) { faultResend{owner: "order-17"}.run(t) }

func TestFaultLostReplyOfNamedOwnersTryLockCountsOnce(t *testing.T) {
	faultResend{owner: "order-17", try: true}.run(t)
}

func TestFaultLostReplyOfNamedOwnersFencedAcquireCountsOnceWithOneToken(t *testing.T) {
	faultResend{owner: "order-17", fenced: true}.run(t)
}

// The request got lost, not the reply: it has not run, and is sent again.
func TestFaultLostRequestOfAcquireCountsOnce(t *testing.T) {
	faultResend{fault: (*faulttest.Proxy).DropRequest, fenced: true}.run(t)
}

func TestFaultLostRequestOfNamedOwnerCountsOnce(t *testing.T) {
	faultResend{fault: (*faulttest.Proxy).DropRequest, owner: "order-17"}.run(t)
}

// R8: several replies get lost in a row.
func TestFaultManyLostRepliesOfAcquireCountOnce(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			name := redistest.Name(t)
			for range 4 {
				p.DropReply(faultRuns(t, "acquire"))
			}
			_, h, err := rlock.New(ses, name, rlock.Fenced()).Lock(lockCtx)
			must(t, err)
			if n := faultCount(t, s, name, h.Owner()); n != "1" {
				t.Fatalf("count %q", n)
			}
			if h.Token() != 1 {
				t.Errorf("token %d", h.Token())
			}
			must(t, h.Unlock())
			if !faultFree(t, s, name) {
				t.Fatal("not free")
			}
		}
	})
}

// R8: a named owner that is in the lock in another session too: the resend adds one.
func TestFaultLostReplyOfNamedOwnerInTwoSessionsAddsOne(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		ctx := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		_, h1, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		p.DropReply(faultRuns(t, "acquire"))
		_, h2, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		if n := faultCount(t, s, name, "order-17"); n != "2" {
			t.Fatalf("count %q", n)
		}
		p.DropReply(faultRuns(t, "release"))
		must(t, h2.Unlock())
		if n := faultCount(t, s, name, "order-17"); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, h1.Unlock())
		if !faultFree(t, s, name) {
			t.Fatal("not free")
		}
	})
}
