package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

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
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		if f.owner != "" {
			ctx = rlock.WithOwner(ctx, f.owner)
		}
		name := redistest.Name(t)
		lock := f.lock(ses, name)
		token := int64(0)
		for round := range 3 {
			var holds []*rlock.Hold
			section := ctx
			for depth := 1; depth <= 3; depth++ {
				c, h := f.take(t, s, p, name, holds, func() (context.Context, *rlock.Hold, error) { return lock(section) })
				section, holds = c, append(holds, h)
				if n := locktest.CallsSent(t, p, "acquire"); n > 2 {
					t.Errorf("%d attempts", n)
				}
				if n := locktest.Field(t, s, name, h.Owner()); n != fmt.Sprint(depth) {
					t.Fatalf("round %d: %d holds, but the count is %q", round, depth, n)
				}
				if n := locktest.Owners(t, s, name); n != 1 {
					t.Fatalf("round %d: %d owners", round, n)
				}
				if f.fenced {
					faultToken(t, s, name, token, h.Token(), depth > 1)
					token = h.Token()
				}
			}
			unlockOneByOne(t, s, name, round, holds)
		}
	})
}

// lock returns the call of Lock, or TryLock, with the options that f says.
func (f faultResend) lock(ses *rlock.Session, name string) func(context.Context) (context.Context, *rlock.Hold, error) {
	var mopts []rlock.MutexOption
	if f.fenced {
		mopts = append(mopts, rlock.Fenced())
	}
	var opts []rlock.LockOption
	if f.fixed {
		opts = append(opts, rlock.Lease(20*time.Second))
	}
	m := rlock.New(ses, name, mopts...)
	if f.try {
		return func(ctx context.Context) (context.Context, *rlock.Hold, error) { return m.TryLock(ctx, opts...) }
	}
	return func(ctx context.Context) (context.Context, *rlock.Hold, error) { return m.Lock(ctx, opts...) }
}

// take calls lock while the fault strikes its acquire. The proxy's log begins with that call.
func (f faultResend) take(t *testing.T, s *redistest.Server, p *faulttest.Proxy, name string, holds []*rlock.Hold,
	lock func() (context.Context, *rlock.Hold, error)) (context.Context, *rlock.Hold) {
	t.Helper()
	p.Reset()
	f.fault(p, locktest.Calls(t, "acquire"))
	section, h, err := lock()
	for f.try && !s.IsMini() && errors.Is(err, rlock.ErrUnavailable) {
		// Its second was over before a busy machine had connected again: what it took is given back.
		redistest.Eventually(t, 20*time.Second, "the hold to be given back", func() bool {
			return f.counts(t, s, name, holds)
		})
		p.Reset()
		section, h, err = lock()
	}
	must(t, err)
	return section, h
}

// unlockOneByOne ends the holds, the inner ones first. Each Unlock takes one off what Redis counts.
func unlockOneByOne(t *testing.T, s *redistest.Server, name string, round int, holds []*rlock.Hold) {
	t.Helper()
	for i := len(holds) - 1; i >= 0; i-- {
		must(t, holds[i].Unlock())
		want := ""
		if i > 0 {
			want = fmt.Sprint(i)
		}
		if n := locktest.Field(t, s, name, holds[i].Owner()); n != want {
			t.Fatalf("round %d: %d holds left, but the count is %q", round, i, n)
		}
	}
}

// counts reports whether Redis counts just these holds, of one owner.
func (f faultResend) counts(t *testing.T, s *redistest.Server, name string, holds []*rlock.Hold) bool {
	t.Helper()
	if len(holds) == 0 {
		return locktest.Owners(t, s, name) == 0
	}
	return locktest.Field(t, s, name, holds[0].Owner()) == fmt.Sprint(len(holds))
}

// faultToken checks the token of a hold against the one before it.
func faultToken(t *testing.T, s *redistest.Server, name string, before, token int64, nested bool) {
	t.Helper()
	if !nested && token <= before {
		t.Errorf("token %d after %d", token, before)
	}
	if nested && token != before {
		t.Errorf("token %d in a nested hold, %d in the outer", token, before)
	}
	if n, err := s.Do(t, "GET", "redisson_lock_token:{"+name+"}").AsInt64(); err != nil || n != token {
		t.Errorf("token %d, Redis has %d (%v)", token, n, err)
	}
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
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			name := redistest.Name(t)
			for range 4 {
				p.DropReply(locktest.Calls(t, "acquire"))
			}
			_, h, err := rlock.New(ses, name, rlock.Fenced()).Lock(lockCtx)
			must(t, err)
			if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
				t.Fatalf("count %q", n)
			}
			if h.Token() != 1 {
				t.Errorf("token %d", h.Token())
			}
			must(t, h.Unlock())
			if !locktest.Free(t, s, name) {
				t.Fatal("not free")
			}
		}
	})
}

// R8: a named owner that is in the lock in another session too: the resend adds one.
func TestFaultLostReplyOfNamedOwnerInTwoSessionsAddsOne(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		ctx := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		_, h1, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		p.DropReply(locktest.Calls(t, "acquire"))
		_, h2, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		if n := locktest.Field(t, s, name, "order-17"); n != "2" {
			t.Fatalf("count %q", n)
		}
		p.DropReply(locktest.Calls(t, "release"))
		must(t, h2.Unlock())
		if n := locktest.Field(t, s, name, "order-17"); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, h1.Unlock())
		if !locktest.Free(t, s, name) {
			t.Fatal("not free")
		}
	})
}
