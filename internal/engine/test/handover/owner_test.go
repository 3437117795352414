package handover_test

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
	*locktest.Stage
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
		inner, _, err := sc.Mutex.Lock(section, rlock.Lease(20*time.Millisecond)) // never unlocked
		must(sc.T, err)
		<-inner.Done()
	}},
	{name: "nor OwnerFrom", handed: 1, inside: func(_ *handOverScene, section context.Context, _ *rlock.Hold) { rlock.OwnerFrom(section) }},
	{name: "nor OwnerFrom inside of another lock", handed: 1, inside: func(sc *handOverScene, section context.Context, _ *rlock.Hold) {
		inner, h, err := rlock.New(sc.Session, sc.Name+"2").Lock(section)
		must(sc.T, err)
		rlock.OwnerFrom(inner)
		must(sc.T, h.Unlock())
	}},
	{name: "nor Hold.Owner", handed: 1, inside: func(_ *handOverScene, _ context.Context, h *rlock.Hold) { h.Owner() }},
	{name: "nor a lock of another session inside", handed: 1, inside: func(sc *handOverScene, section context.Context, _ *rlock.Hold) {
		_, h, err := rlock.New(sc.other, sc.Name+"2").Lock(section)
		must(sc.T, err)
		must(sc.T, h.Unlock())
	}},
}

// Unlock with a waiter of the same session in the queue: what must go through Redis does.
func TestHandOverNot(t *testing.T) {
	t.Parallel()
	for _, c := range handOverCases {
		t.Run(c.name, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				sc := &handOverScene{Stage: locktest.NewStage(t, s, rlock.Config{HandOverLimit: c.limit}), other: dial(t, s, rlock.Config{})}
				if c.fenced {
					sc.Mutex = rlock.New(sc.Session, sc.Name, rlock.Fenced())
				}
				ctx, waitCtx := sc.Ctx, sc.Ctx
				if c.named {
					ctx = rlock.WithOwner(ctx, "bob")
				}
				if c.waiter != nil {
					waitCtx = c.waiter(waitCtx)
				}
				section, h := sc.Lock(ctx, c.opts...)
				if c.inside != nil {
					c.inside(sc, section, h)
				}
				next := sc.Queue(waitCtx, c.waiting...)
				must(t, h.Unlock())
				must(t, sc.In(next).Hold.Unlock())
				if n := sc.Count(); n != c.handed {
					t.Errorf("%d hand-overs in memory, want %d", n, c.handed)
				}
				must(t, s.Do(t, "DEL", "redisson_lock_token:{"+sc.Name+"}").Error())
				locktest.NothingLeft(t, s, sc.Session, sc.other)
			})
		})
	}
}

// An attempt of the front got no answer: it may still run, and take the lock for a claim that
// the front does not need any more.
func TestHandOverNotToAWaiterWithALostReply(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, fault := range []string{"reply", "request"} {
			st := locktest.NewStage(t, s, rlock.Config{PollFloor: time.Minute})
			other := dial(t, s, rlock.Config{})
			_, block, err := rlock.New(other, st.Name).Lock(st.Ctx)
			must(t, err)
			if fault == "reply" {
				st.Proxy.DropReply(locktest.Calls(t, "acquire"))
			} else {
				st.Proxy.DropRequest(locktest.Calls(t, "acquire"))
			}
			failed := st.Queue(st.Ctx)
			st.AsksNoMore()
			// Nobody is told: the waiter sleeps on while the lock is free, and does not have it by a grant.
			must(t, s.Do(t, "DEL", st.Name).Error())
			_, h, err := st.Mutex.TryLock(st.Ctx)
			must(t, err)
			locktest.Unhurried(st.Session, st.Name)
			must(t, h.Unlock())
			must(t, st.In(failed).Hold.Unlock())
			if n := st.Count(); n != 0 {
				t.Errorf("%s lost: %d hand-overs in memory", fault, n)
			}
			locktest.Is(t, "Unlock", block.Unlock(), rlock.ErrLost)
			locktest.NothingLeft(t, s, st.Session, other)
			must(t, st.Session.Close()) // it would go on listening for a moment
		}
	})
}

// While a section has more holds than one it goes on; the last Unlock hands the claim over,
// whichever hold it is.
func TestHandOverAndNestedHolds(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		_, h := st.Lock(st.Ctx)
		b, c, d, e := st.Queue(st.Ctx), st.Queue(st.Ctx), st.Queue(st.Ctx), st.Queue(st.Ctx)

		in := st.HandOver(h, b)
		_, nested, err := st.Mutex.Lock(in.Ctx)
		must(t, err)
		st.Stands("2")
		_, deeper, err := st.Mutex.TryLock(in.Ctx)
		must(t, err)
		st.Stands("3")
		must(t, nested.Unlock())
		st.Stands("2")
		must(t, deeper.Unlock())
		st.Stands("1")
		st.Outside(c, "the next one")

		in = st.HandOver(in.Hold, c)
		st.Stands("1")
		_, nested, err = st.Mutex.Lock(in.Ctx)
		must(t, err)
		must(t, in.Hold.Unlock())
		st.Outside(d, "the next one")
		must(t, in.Ctx.Err())
		in = st.HandOver(nested, d)
		st.Stands("1")
		in = st.HandOver(in.Hold, e)
		must(t, in.Hold.Unlock())
		locktest.NothingLeft(t, s, st.Session)
	})
}
