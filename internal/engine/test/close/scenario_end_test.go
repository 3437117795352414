package close_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// An abandoned lock stands until its lease ends: no waiter of the session enters it meanwhile,
// and Close leaves it.
func TestAnAbandonedLockStandsThroughClose(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, nested := range []bool{false, true} {
			st := locktest.NewStage(t, s, rlock.Config{})
			section, h := st.Lock(st.Ctx)
			next := st.Queue(st.Ctx)
			abandoned := h
			if nested { // the last Unlock leaves it then
				_, inner, err := st.Mutex.Lock(section, rlock.Lease(time.Minute))
				must(t, err)
				abandoned = inner
			}
			must(t, abandoned.Abandon())
			if nested {
				must(t, h.Unlock())
			}
			locktest.Ends(t, section, s.Slack(), rlock.ErrReleased)
			locktest.Is(t, "Unlock", abandoned.Unlock(), rlock.ErrNotHeld)
			must(t, st.Session.Close())
			got := locktest.Get(t, next, 5*time.Second, "the waiter")
			locktest.Is(t, "the waiter", got.Err, rlock.ErrClosed)
			if locktest.Free(t, s, st.Name) || st.Count() != 0 {
				t.Errorf("the abandoned lock is %v, after %d hand-overs", st.Hash(), st.Count())
			}
			must(t, s.Do(t, "DEL", st.Name, "relock_holds:{"+st.Name+"}").Error())
		}
	})
}

// It is not renewed either: the waiter gets it when the lease is over.
func TestAnAbandonedLockEndsWithItsLease(t *testing.T) {
	locktest.Leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *locktest.Passes) {
		h, next := locktest.TakeTurns(t, ses)
		time.Sleep(10 * time.Second) // it was renewed 6.something s after its begin
		left := m.TTL("x")
		must(t, h.Abandon())
		time.Sleep(left - time.Millisecond)
		synctest.Wait()
		if len(next) > 0 || m.TTL("x") != time.Millisecond {
			t.Errorf("before the lease is over %d are in; the lease in Redis is over in %v", len(next), m.TTL("x"))
		}
		in := <-next
		must(t, in.Err)
		if p.Count() != 0 || in.Hold.Owner() == h.Owner() {
			t.Errorf("%d hand-overs", p.Count())
		}
		must(t, in.Hold.Unlock())
	})
}

// closeStates are the states that a claim may be in when its session is closed.
var closeStates = []struct {
	state string
	lease time.Duration // so long that it ends nothing, unless it must
	// prepare brings a claim into the state, and returns what is to be done once Close has
	// begun.
	prepare func(st *locktest.Stage) (after func())
}{
	{state: "asking", prepare: func(st *locktest.Stage) func() {
		seen, send := st.Proxy.HoldRequest(locktest.Calls(st.T, "acquire"))
		locked := st.Queue(st.Ctx)
		st.Reached(seen)
		return func() {
			locktest.Is(st.T, "Lock", locktest.Get(st.T, locked, 5*time.Second, "Lock").Err, rlock.ErrClosed)
			send()
		}
	}},
	{state: "held", prepare: func(st *locktest.Stage) func() {
		section, h := st.Lock(st.Ctx)
		return func() {
			locktest.Ends(st.T, section, 5*time.Second, rlock.ErrClosed)
			locktest.Is(st.T, "Unlock", h.Unlock(), rlock.ErrClosed)
		}
	}},
	{state: "handed over", prepare: func(st *locktest.Stage) func() {
		_, h := st.Lock(st.Ctx)
		in, next := st.HandOver(h, st.Queue(st.Ctx)), st.Queue(st.Ctx)
		return func() {
			locktest.Ends(st.T, in.Ctx, 5*time.Second, rlock.ErrClosed)
			locktest.Is(st.T, "the waiter", locktest.Get(st.T, next, 5*time.Second, "the waiter").Err, rlock.ErrClosed)
		}
	}},
	{state: "releasing", prepare: func(st *locktest.Stage) func() {
		_, h := st.Lock(st.Ctx)
		seen, send := st.Proxy.HoldRequest(locktest.Calls(st.T, "release"))
		unlocked := locktest.Go(h.Unlock)
		st.Reached(seen)
		return func() {
			send()
			must(st.T, locktest.Get(st.T, unlocked, 5*time.Second, "Unlock"))
		}
	}},
	{state: "ending", prepare: func(st *locktest.Stage) func() {
		seen, send := st.Proxy.HoldRequest(locktest.Calls(st.T, "acquire"))
		ctx, cancel := context.WithCancel(st.Ctx)
		locked := st.Queue(ctx)
		st.Reached(seen)
		cancel()
		locktest.Is(st.T, "Lock", locktest.Get(st.T, locked, 5*time.Second, "Lock").Err, context.Canceled)
		return send
	}},
	{state: "lost", lease: 1500 * time.Millisecond, prepare: func(st *locktest.Stage) func() {
		section, h := st.Lock(st.Ctx)
		st.Proxy.BlackHole(true)
		locktest.Ends(st.T, section, 5*time.Second, rlock.ErrLost)
		st.Proxy.BlackHole(false)
		return func() { locktest.Is(st.T, "Unlock", h.Unlock(), rlock.ErrLost) }
	}},
}

// Close in each state of a claim: nothing stands but what was left, and nothing leaks.
func TestCloseInEachStateOfAClaim(t *testing.T) {
	t.Parallel()
	for _, c := range closeStates {
		t.Run(c.state, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				st := locktest.NewStage(t, s, rlock.Config{Lease: c.lease})
				after := c.prepare(st)
				closed := locktest.Go(st.Session.Close)
				after()
				must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
				redistest.Eventually(t, 5*time.Second, "no key", func() bool { return len(s.Keys(t)) == 0 })
				locktest.NothingLeft(t, s, st.Session)
			})
		})
	}
}

// Close while the claim is on its way to a waiter that is cancelled before its Lock returns.
func TestCloseWhileAClaimIsHandedToAWaiterThatLeaves(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, cancelFirst := range []bool{true, false} {
			waiting, goOn := make(chan struct{}), make(chan struct{})
			ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
				Waiting: func(context.Context, locktrace.Waiting) { close(waiting); <-goOn },
			}})
			name := redistest.Name(t)
			_, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
			must(t, err)
			locktest.Unhurried(ses, name)
			ctx, cancel := context.WithCancel(within(t, 30*time.Second))
			defer cancel()
			next := locktest.GoLock(rlock.New(ses, name), ctx)
			<-waiting
			must(t, h.Unlock())
			if locktest.Free(t, s, name) {
				t.Error("the claim was released, not handed over")
			}
			if cancelFirst {
				cancel()
			}
			closed := locktest.Go(ses.Close)
			must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
			cancel()
			close(goOn)
			got := locktest.Get(t, next, 5*time.Second, "Lock")
			if got.Err == nil {
				t.Error("Lock succeeded")
			}
			redistest.Eventually(t, 5*time.Second, "no key", func() bool { return len(s.Keys(t)) == 0 })
			locktest.NothingLeft(t, s, ses)
		}
	})
}
