package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// What must go through Redis does: Unlock with a waiter of the same session in line, and
// who it is, or how he came there, forbids to let him in unseen.
func TestHandOverNot(t *testing.T) {
	type scene struct {
		*stage
		other *rlock.Session
	}
	for _, c := range []struct {
		name    string
		handed  int
		limit   int
		fenced  bool
		named   bool // the holder is
		opts    []rlock.LockOption
		inside  func(sc *scene, section context.Context, h *rlock.Hold)
		waiter  func(ctx context.Context) context.Context
		waiting []rlock.LockOption
	}{
		{name: "nothing is in the way", handed: 1},
		{name: "nor a wait that is bounded", handed: 1, waiting: []rlock.LockOption{rlock.Wait(time.Minute)}},
		{name: "nor a question for the rest of the lease", handed: 1, inside: func(_ *scene, _ context.Context, h *rlock.Hold) { h.Remaining() }},
		{name: "turned off", limit: -1},
		{name: "a fixed lease", opts: []rlock.LockOption{rlock.Lease(time.Minute)}},
		{name: "a waiter with a fixed lease", waiting: []rlock.LockOption{rlock.Lease(time.Minute)}},
		{name: "a named owner", named: true},
		{name: "a named waiter", waiter: func(ctx context.Context) context.Context { return rlock.WithOwner(ctx, "ann") }},
		{name: "fencing", fenced: true},
		{name: "a nested hold whose lease is over", inside: func(sc *scene, section context.Context, _ *rlock.Hold) {
			inner, _, err := sc.m.Lock(section, rlock.Lease(20*time.Millisecond)) // never unlocked
			must(sc.t, err)
			<-inner.Done()
		}},
		{name: "OwnerFrom", inside: func(_ *scene, section context.Context, _ *rlock.Hold) { rlock.OwnerFrom(section) }},
		{name: "OwnerFrom inside of another lock", inside: func(sc *scene, section context.Context, _ *rlock.Hold) {
			inner, h, err := rlock.New(sc.ses, sc.name+"2").Lock(section)
			must(sc.t, err)
			rlock.OwnerFrom(inner)
			must(sc.t, h.Unlock())
		}},
		{name: "Hold.Owner", inside: func(_ *scene, _ context.Context, h *rlock.Hold) { h.Owner() }},
		{name: "another session knows the owner", inside: func(sc *scene, section context.Context, _ *rlock.Hold) {
			_, h, err := rlock.New(sc.other, sc.name+"2").Lock(section)
			must(sc.t, err)
			must(sc.t, h.Unlock())
		}},
		{name: "another session was refused as the owner", inside: func(sc *scene, section context.Context, _ *rlock.Hold) {
			_, block, err := rlock.New(sc.other, sc.name+"2").Lock(sc.ctx)
			must(sc.t, err)
			_, _, err = rlock.New(sc.other, sc.name+"2").TryLock(section)
			locktest.Is(sc.t, "TryLock", err, rlock.ErrNotAcquired)
			must(sc.t, block.Unlock())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				sc := &scene{stage: newStage(t, s, rlock.Config{HandOverLimit: c.limit}), other: dial(t, s, rlock.Config{})}
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

// An attempt of the one in front got no answer: it may still run, and would then enter for
// him what he has been given already.
func TestHandOverNotToAWaiterWithALostReply(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
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
			redistest.Eventually(t, 10*time.Second, "it is refused, listens, and is refused again", func() bool {
				return st.refusals() >= 2
			})
			st.p.DropMessages(true) // so that it sleeps on when the lock is free
			must(t, block.Unlock())
			_, h, err := st.m.TryLock(st.ctx)
			must(t, err)
			st.ses.Unhurried(st.name)
			st.p.DropMessages(false)
			must(t, h.Unlock())
			must(t, st.in(failed).hold.Unlock())
			if n := st.count(); n != 0 {
				t.Errorf("%s lost: %d hand-overs in memory", fault, n)
			}
			nothingLeft(t, s, st.ses, other)
		}
	})
}

// While an owner has more holds than one the lock stays with it; the last of them passes it
// on only if it is the first, for Redis knows the others by their ids.
func TestHandOverAndNestedHolds(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		_, h := st.lock(st.ctx)
		b, c, d, e := st.queue(st.ctx), st.queue(st.ctx), st.queue(st.ctx), st.queue(st.ctx)

		in := st.handOver(h, b)
		_, nested, err := st.m.Lock(in.ctx) // waits until Redis knows who has the lock
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

		in = st.handOver(in.hold, c) // and the run goes on
		st.stands("1")
		_, nested, err = st.m.Lock(in.ctx)
		must(t, err)
		must(t, in.hold.Unlock())
		st.outside(d, "the next one")
		must(t, in.ctx.Err())
		before := st.count()
		must(t, nested.Unlock())
		in = st.in(d)
		if n := st.count(); n != before {
			t.Errorf("%d hand-overs from a hold that Redis knows by its id", n-before)
		}

		st.ses.Unhurried(st.name)
		in = st.handOver(in.hold, e)
		must(t, in.hold.Unlock())
		nothingLeft(t, s, st.ses)
	})
}

// A nested Lock while the transfer is under way waits for it, and no longer than it may:
// Redis does not know the owner yet, and would refuse it.
func TestHandOverNestedLockWaitsForTheTransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			ran    bool
			passed int // the last of these Redis has not even been told of
		}{{false, 1}, {true, 1}, {true, 2}} {
			st := newStage(t, s, rlock.Config{})
			_, h := st.lock(st.ctx)
			var queue []<-chan faultLocked
			for range c.passed + 1 {
				queue = append(queue, st.queue(st.ctx))
			}
			fault := st.stuck
			if c.ran {
				fault = st.unanswered
			}
			seen, goOn := fault()
			var in faultLocked
			for i, next := range queue[:c.passed] {
				in = st.handOver(h, next)
				h = in.hold
				if i == 0 {
					st.reaches(seen)
				}
			}
			_, _, err := st.m.Lock(in.ctx, rlock.Wait(20*time.Millisecond))
			locktest.Is(t, "a nested Lock with Wait", err, rlock.ErrNotAcquired)
			nested := faultGoLock(st.m, in.ctx)
			goOn()
			n := st.in(nested)
			st.stands("2")
			must(t, n.hold.Unlock())
			must(t, in.hold.Unlock())
			must(t, st.in(queue[c.passed]).hold.Unlock())
			nothingLeft(t, s, st.ses)
		}
	})
}
