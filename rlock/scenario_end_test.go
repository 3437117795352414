package rlock_test

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
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for _, nested := range []bool{false, true} {
			st := newStage(t, s, rlock.Config{})
			section, h := st.lock(st.ctx)
			next := st.queue(st.ctx)
			abandoned := h
			if nested { // the last Unlock leaves it then
				_, inner, err := st.m.Lock(section, rlock.Lease(time.Minute))
				must(t, err)
				abandoned = inner
			}
			must(t, abandoned.Abandon())
			if nested {
				must(t, h.Unlock())
			}
			locktest.Ends(t, section, s.Slack(), rlock.ErrReleased)
			locktest.Is(t, "Unlock", abandoned.Unlock(), rlock.ErrNotHeld)
			must(t, st.ses.Close())
			got := locktest.Get(t, next, 5*time.Second, "the waiter")
			locktest.Is(t, "the waiter", got.err, rlock.ErrClosed)
			if faultFree(t, s, st.name) || st.count() != 0 {
				t.Errorf("the abandoned lock is %v, after %d hand-overs", st.hash(), st.count())
			}
			must(t, s.Do(t, "DEL", st.name, "relock_holds:{"+st.name+"}").Error())
		}
	})
}

// It is not renewed either: the waiter gets it when the lease is over.
func TestAnAbandonedLockEndsWithItsLease(t *testing.T) {
	leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *passes) {
		h, next := takeTurns(t, ses)
		time.Sleep(10 * time.Second) // it was renewed 6.something s after its begin
		left := m.TTL("x")
		must(t, h.Abandon())
		time.Sleep(left - time.Millisecond)
		synctest.Wait()
		if len(next) > 0 || m.TTL("x") != time.Millisecond {
			t.Errorf("before the lease is over %d are in; the lease in Redis is over in %v", len(next), m.TTL("x"))
		}
		in := <-next
		must(t, in.err)
		if p.count() != 0 || in.hold.Owner() == h.Owner() {
			t.Errorf("%d hand-overs", p.count())
		}
		must(t, in.hold.Unlock())
	})
}

// closeStates are the states that a claim may be in when its session is closed.
var closeStates = []struct {
	state string
	lease time.Duration // so long that it ends nothing, unless it must
	// prepare brings a claim into the state, and returns what is to be done once Close has
	// begun.
	prepare func(st *stage) (after func())
}{
	{state: "asking", prepare: func(st *stage) func() {
		seen, send := st.p.HoldRequest(faultRuns(st.t, "acquire"))
		locked := st.queue(st.ctx)
		st.reached(seen)
		return func() {
			locktest.Is(st.t, "Lock", locktest.Get(st.t, locked, 5*time.Second, "Lock").err, rlock.ErrClosed)
			send()
		}
	}},
	{state: "held", prepare: func(st *stage) func() {
		section, h := st.lock(st.ctx)
		return func() {
			locktest.Ends(st.t, section, 5*time.Second, rlock.ErrClosed)
			locktest.Is(st.t, "Unlock", h.Unlock(), rlock.ErrClosed)
		}
	}},
	{state: "handed over", prepare: func(st *stage) func() {
		_, h := st.lock(st.ctx)
		in, next := st.handOver(h, st.queue(st.ctx)), st.queue(st.ctx)
		return func() {
			locktest.Ends(st.t, in.ctx, 5*time.Second, rlock.ErrClosed)
			locktest.Is(st.t, "the waiter", locktest.Get(st.t, next, 5*time.Second, "the waiter").err, rlock.ErrClosed)
		}
	}},
	{state: "releasing", prepare: func(st *stage) func() {
		_, h := st.lock(st.ctx)
		seen, send := st.p.HoldRequest(faultRuns(st.t, "release"))
		unlocked := faultGo(h.Unlock)
		st.reached(seen)
		return func() {
			send()
			must(st.t, locktest.Get(st.t, unlocked, 5*time.Second, "Unlock"))
		}
	}},
	{state: "ending", prepare: func(st *stage) func() {
		seen, send := st.p.HoldRequest(faultRuns(st.t, "acquire"))
		ctx, cancel := context.WithCancel(st.ctx)
		locked := st.queue(ctx)
		st.reached(seen)
		cancel()
		locktest.Is(st.t, "Lock", locktest.Get(st.t, locked, 5*time.Second, "Lock").err, context.Canceled)
		return send
	}},
	{state: "lost", lease: 1500 * time.Millisecond, prepare: func(st *stage) func() {
		section, h := st.lock(st.ctx)
		st.p.BlackHole(true)
		locktest.Ends(st.t, section, 5*time.Second, rlock.ErrLost)
		st.p.BlackHole(false)
		return func() { locktest.Is(st.t, "Unlock", h.Unlock(), rlock.ErrLost) }
	}},
}

// Close in each state of a claim: nothing stands but what was left, and nothing leaks.
func TestCloseInEachStateOfAClaim(t *testing.T) {
	t.Parallel()
	for _, c := range closeStates {
		t.Run(c.state, func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				st := newStage(t, s, rlock.Config{Lease: c.lease})
				after := c.prepare(st)
				closed := faultGo(st.ses.Close)
				after()
				must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
				redistest.Eventually(t, 5*time.Second, "no key", func() bool { return len(s.Keys(t)) == 0 })
				nothingLeft(t, s, st.ses)
			})
		})
	}
}

// Close while the claim is on its way to a waiter that is cancelled before its Lock returns.
func TestCloseWhileAClaimIsHandedToAWaiterThatLeaves(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for _, cancelFirst := range []bool{true, false} {
			waiting, goOn := make(chan struct{}), make(chan struct{})
			ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
				Waiting: func(context.Context, locktrace.Waiting) { close(waiting); <-goOn },
			}})
			name := redistest.Name(t)
			_, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
			must(t, err)
			ses.Unhurried(name)
			ctx, cancel := context.WithCancel(within(t, 30*time.Second))
			defer cancel()
			next := faultGoLock(rlock.New(ses, name), ctx)
			<-waiting
			must(t, h.Unlock())
			if faultFree(t, s, name) {
				t.Error("the claim was released, not handed over")
			}
			if cancelFirst {
				cancel()
			}
			closed := faultGo(ses.Close)
			must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
			cancel()
			close(goOn)
			got := locktest.Get(t, next, 5*time.Second, "Lock")
			if got.err == nil {
				t.Error("Lock succeeded")
			}
			redistest.Eventually(t, 5*time.Second, "no key", func() bool { return len(s.Keys(t)) == 0 })
			nothingLeft(t, s, ses)
		}
	})
}
