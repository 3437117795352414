package fault_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

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

// A faultFlying is one such attempt, on one server.
type faultFlying struct {
	faultFlight
	s             *redistest.Server
	p             *faulttest.Proxy
	name          string
	m             *rlock.Mutex
	base, section context.Context // of the attempt; the outer hold's section, or base
	outer         *rlock.Hold     // if nested
}

func (f faultFlight) run(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		base := within(t, 30*time.Second)
		if f.owner != "" {
			base = rlock.WithOwner(base, f.owner)
		}
		name := redistest.Name(t)
		var mopts []rlock.MutexOption
		if f.fenced {
			mopts = append(mopts, rlock.Fenced())
		}
		a := faultFlying{faultFlight: f, s: s, p: p, name: name, m: rlock.New(ses, name, mopts...), base: base, section: base}
		if f.nested {
			var err error
			a.section, a.outer, err = a.m.Lock(base)
			must(t, err)
		}

		hold := p.HoldReply
		if f.request {
			hold = p.HoldRequest
		}
		seen, release := hold(locktest.Calls(t, "acquire"))
		defer release()
		a.attempt(t, seen)
		a.undone(t, release)
		if f.nested {
			a.nests(t)
		}
		if !locktest.Free(t, s, name) {
			t.Fatal("not free")
		}
		// And the name is good for another.
		_, h, err := a.m.TryLock(within(t, 5*time.Second))
		must(t, err)
		must(t, h.Unlock())
	})
}

// attempt has the attempt fail while it is in flight.
func (a *faultFlying) attempt(t *testing.T, seen <-chan struct{}) {
	t.Helper()
	from := a.section
	if a.differentPath {
		from = a.base
	}
	ctx, cancel := context.WithCancel(from)
	wantErr := []error{rlock.ErrNotAcquired, context.Canceled}
	var opts []rlock.LockOption
	switch {
	case a.deadline:
		ctx, cancel = context.WithTimeout(from, 300*time.Millisecond)
		wantErr[1] = context.DeadlineExceeded
	case a.viaWait:
		opts = append(opts, rlock.Wait(300*time.Millisecond))
		wantErr = wantErr[:1]
	}
	defer cancel()
	lock := a.m.Lock
	if a.try {
		lock = a.m.TryLock
	}
	locked := make(chan locktest.Locked, 1)
	go func() {
		c, h, err := lock(ctx, opts...)
		locked <- locktest.Locked{Ctx: c, Hold: h, Err: err}
	}()
	locktest.Get(t, seen, 5*time.Second, "the attempt")
	if !a.deadline && !a.viaWait {
		cancel()
	}
	got := locktest.Get(t, locked, 2*time.Second+a.s.Slack(), "Lock")
	locktest.Is(t, "Lock", got.Err, wantErr...)
	if got.Hold != nil || got.Ctx != ctx {
		t.Errorf("a failed Lock returned hold %v, and a context other than its own: %v", got.Hold, got.Ctx != ctx)
	}
}

// inRedis is the owner that is looked at in Redis.
func (a *faultFlying) inRedis() string {
	if a.outer != nil {
		return a.outer.Owner()
	}
	return a.owner
}

// right reports whether Redis is as it was before the attempt.
func (a *faultFlying) right(t *testing.T) bool {
	want := ""
	if a.nested {
		want = "1"
	}
	if owner := a.inRedis(); owner != "" && locktest.Field(t, a.s, a.name, owner) != want {
		return false
	}
	if a.nested {
		return locktest.Owners(t, a.s, a.name) == 1
	}
	return locktest.Free(t, a.s, a.name)
}

// undone waits until the attempt has left nothing; release lets on what was held back.
func (a *faultFlying) undone(t *testing.T, release func()) {
	t.Helper()
	if !a.request {
		redistest.Eventually(t, time.Second+a.s.Slack(), "the right count", func() bool { return a.right(t) })
		release()
		return
	}
	release()
	// State comes behind all that was held back, and behind what undoes it.
	redistest.Eventually(t, time.Second+a.s.Slack(), "the undo", func() bool {
		return locktest.CallsSent(t, a.p, "release") >= 1
	})
	_, err := a.m.State(a.base)
	must(t, err)
	if !a.right(t) {
		owner := a.inRedis()
		t.Fatalf("the hash is wrong: owner %q has %q, %d owners", owner, locktest.Field(t, a.s, a.name, owner), locktest.Owners(t, a.s, a.name))
	}
}

// nests: it is as if the nested Lock had never been.
func (a *faultFlying) nests(t *testing.T) {
	t.Helper()
	if a.section.Err() != nil {
		t.Fatalf("the outer section ended: %v", context.Cause(a.section))
	}
	_, h, err := a.m.Lock(a.section)
	must(t, err)
	if n := locktest.Field(t, a.s, a.name, a.inRedis()); n != "2" {
		t.Fatalf("count %q after another nested Lock", n)
	}
	must(t, h.Unlock())
	if n := locktest.Field(t, a.s, a.name, a.inRedis()); n != "1" {
		t.Fatalf("count %q after its Unlock", n)
	}
	must(t, a.outer.Unlock())
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
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		base := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		_, elsewhere, err := rlock.New(other, name).Lock(base)
		must(t, err)
		seen, release := p.HoldReply(locktest.Calls(t, "acquire"))
		defer release()
		ctx, cancel := context.WithCancel(base)
		defer cancel()
		locked := locktest.GoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, seen, 5*time.Second, "the attempt")
		if n := locktest.Field(t, s, name, "order-17"); n != "2" {
			t.Fatalf("count %q", n)
		}
		cancel()
		got := locktest.Get(t, locked, 2*time.Second+s.Slack(), "Lock")
		locktest.Is(t, "Lock", got.Err, rlock.ErrNotAcquired, context.Canceled)
		redistest.Eventually(t, time.Second+s.Slack(), "one hold is left", func() bool { return locktest.Field(t, s, name, "order-17") == "1" })
		release()
		must(t, elsewhere.Unlock())
		if !locktest.Free(t, s, name) {
			t.Fatal("not free")
		}
	})
}

// R7: a ctx that was done before the call: its own error, and not a byte is sent.
func TestFaultLockOnADoneContextSendsNothing(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
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
