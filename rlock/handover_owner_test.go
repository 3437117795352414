package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A handOverScene is what a case of TestHandOverNot may use inside.
type handOverScene struct {
	*stage
	other *rlock.Session
}

// handOverCases are what keeps a lock from being handed over in memory, and what does not.
var handOverCases = []struct {
	name    string
	handed  int
	limit   int
	fenced  bool
	named   bool // the holder is
	opts    []rlock.LockOption
	inside  func(sc *handOverScene, section context.Context, h *rlock.Hold)
	waiter  func(ctx context.Context) context.Context
	waiting []rlock.LockOption
}{
	{name: "nothing is in the way", handed: 1},
	{name: "nor a wait that is bounded", handed: 1, waiting: []rlock.LockOption{rlock.Wait(time.Minute)}},
	{name: "nor a question for the rest of the lease", handed: 1, inside: func(_ *handOverScene, _ context.Context, h *rlock.Hold) { h.Remaining() }},
	{name: "turned off", limit: -1},
	{name: "a fixed lease", opts: []rlock.LockOption{rlock.Lease(time.Minute)}},
	{name: "a waiter with a fixed lease", waiting: []rlock.LockOption{rlock.Lease(time.Minute)}},
	{name: "a named owner", named: true},
	{name: "a named waiter", waiter: func(ctx context.Context) context.Context { return rlock.WithOwner(ctx, "ann") }},
	{name: "no fencing token is left", fenced: true},
	{name: "a nested hold whose lease is over", inside: func(sc *handOverScene, section context.Context, _ *rlock.Hold) {
		inner, _, err := sc.m.Lock(section, rlock.Lease(20*time.Millisecond)) // never unlocked
		must(sc.t, err)
		<-inner.Done()
	}},
	{name: "nor OwnerFrom", handed: 1, inside: func(_ *handOverScene, section context.Context, _ *rlock.Hold) { rlock.OwnerFrom(section) }},
	{name: "nor OwnerFrom inside of another lock", handed: 1, inside: func(sc *handOverScene, section context.Context, _ *rlock.Hold) {
		inner, h, err := rlock.New(sc.ses, sc.name+"2").Lock(section)
		must(sc.t, err)
		rlock.OwnerFrom(inner)
		must(sc.t, h.Unlock())
	}},
	{name: "nor Hold.Owner", handed: 1, inside: func(_ *handOverScene, _ context.Context, h *rlock.Hold) { h.Owner() }},
	{name: "nor a lock of another session inside", handed: 1, inside: func(sc *handOverScene, section context.Context, _ *rlock.Hold) {
		_, h, err := rlock.New(sc.other, sc.name+"2").Lock(section)
		must(sc.t, err)
		must(sc.t, h.Unlock())
	}},
}

// Unlock with a waiter of the same session in the queue: what must go through Redis does.
func TestHandOverNot(t *testing.T) {
	t.Parallel()
	for _, c := range handOverCases {
		t.Run(c.name, func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				sc := &handOverScene{stage: newStage(t, s, rlock.Config{HandOverLimit: c.limit}), other: dial(t, s, rlock.Config{})}
				if c.fenced {
					sc.m = rlock.New(sc.ses, sc.name, rlock.Fenced())
				}
				ctx, waitCtx := sc.ctx, sc.ctx
				if c.named {
					ctx = rlock.WithOwner(ctx, "bob")
				}
				if c.waiter != nil {
					waitCtx = c.waiter(waitCtx)
				}
				section, h := sc.lock(ctx, c.opts...)
				if c.inside != nil {
					c.inside(sc, section, h)
				}
				next := sc.queue(waitCtx, c.waiting...)
				must(t, h.Unlock())
				must(t, sc.in(next).hold.Unlock())
				if n := sc.count(); n != c.handed {
					t.Errorf("%d hand-overs in memory, want %d", n, c.handed)
				}
				must(t, s.Do(t, "DEL", "redisson_lock_token:{"+sc.name+"}").Error())
				nothingLeft(t, s, sc.ses, sc.other)
			})
		})
	}
}

// An attempt of the front got no answer: it may still run, and take the lock for a claim that
// the front does not need any more.
func TestHandOverNotToAWaiterWithALostReply(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, fault := range []string{"reply", "request"} {
			st := newStage(t, s, rlock.Config{PollFloor: time.Minute})
			other := dial(t, s, rlock.Config{})
			_, block, err := rlock.New(other, st.name).Lock(st.ctx)
			must(t, err)
			if fault == "reply" {
				st.p.DropReply(faultRuns(t, "acquire"))
			} else {
				st.p.DropRequest(faultRuns(t, "acquire"))
			}
			failed := st.queue(st.ctx)
			st.asksNoMore()
			// Nobody is told: the waiter sleeps on while the lock is free, and does not have it by a grant.
			must(t, s.Do(t, "DEL", st.name).Error())
			_, h, err := st.m.TryLock(st.ctx)
			must(t, err)
			st.ses.Unhurried(st.name)
			must(t, h.Unlock())
			must(t, st.in(failed).hold.Unlock())
			if n := st.count(); n != 0 {
				t.Errorf("%s lost: %d hand-overs in memory", fault, n)
			}
			locktest.Is(t, "Unlock", block.Unlock(), rlock.ErrLost)
			nothingLeft(t, s, st.ses, other)
			must(t, st.ses.Close()) // it would go on listening for a moment
		}
	})
}

// While a section has more holds than one it goes on; the last Unlock hands the claim over,
// whichever hold it is.
func TestHandOverAndNestedHolds(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		_, h := st.lock(st.ctx)
		b, c, d, e := st.queue(st.ctx), st.queue(st.ctx), st.queue(st.ctx), st.queue(st.ctx)

		in := st.handOver(h, b)
		_, nested, err := st.m.Lock(in.ctx)
		must(t, err)
		st.stands("2")
		_, deeper, err := st.m.TryLock(in.ctx)
		must(t, err)
		st.stands("3")
		must(t, nested.Unlock())
		st.stands("2")
		must(t, deeper.Unlock())
		st.stands("1")
		st.outside(c, "the next one")

		in = st.handOver(in.hold, c)
		st.stands("1")
		_, nested, err = st.m.Lock(in.ctx)
		must(t, err)
		must(t, in.hold.Unlock())
		st.outside(d, "the next one")
		must(t, in.ctx.Err())
		in = st.handOver(nested, d)
		st.stands("1")
		in = st.handOver(in.hold, e)
		must(t, in.hold.Unlock())
		nothingLeft(t, s, st.ses)
	})
}
