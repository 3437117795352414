package fairlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Scenario 16: TryLock does not overtake waiters of its session that Redis does not know yet.
func TestTryLockDoesNotOvertakeGatheredWaiters(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a := dial(t, s, silent())
		b, client := locktest.DialGated(t, s, silent())
		first := lock(t, ctx, fairlock.New(a, "x"))
		seen, release := client.Hold(runs("acquire"))
		defer release()
		next := goLock(ctx, fairlock.New(b, "x"))
		locktest.Get(t, seen, patience, "the waiter's call is about to be written")
		unlock(t, first) // free, and Redis knows of no waiter
		_, _, err := fairlock.New(b, "x").TryLock(ctx)
		is(t, "TryLock before a waiter", err, rlock.ErrNotAcquired)
		_, _, err = fairlock.New(b, "x").TryLock(rlock.WithOwner(ctx, "me"))
		is(t, "TryLock by name before a waiter", err, rlock.ErrNotAcquired)
		release()
		unlock(t, granted(t, next, patience, "the waiter"))
		nothingLeft(t, s)
	})
}

// Scenario 16: a session whose channel is just being reconnected keeps its place.
func TestAReconnectingSessionKeepsItsPlace(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a := dial(t, s, silent())
		b, proxy := dialProxy(t, s, silent())
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		away := goRun(t, ctx, b, 3)
		next := goQueued(t, ctx, m, 4)
		proxy.Refuse(true)
		redistest.Eventually(t, patience, "Redis to see that the session has no connection", func() bool {
			return !strings.Contains(strings.Join(s.Channels(t), " "), b.ID())
		})
		unlock(t, first)
		l := granted(t, next, patience, "the session that hears")
		if n, err := m.Waiters(ctx); err != nil || n != 3 {
			t.Errorf("%d waiters are left, %v; want the three that do not hear", n, err)
		}
		proxy.Refuse(false)
		redistest.Eventually(t, patience, "the session to be back", func() bool {
			return strings.Contains(strings.Join(s.Channels(t), " "), b.ID())
		})
		unlock(t, l)
		for i, c := range away {
			unlock(t, granted(t, c, patience, fmt.Sprint("waiter ", i, " of the session that is back")))
		}
		nothingLeft(t, s)
	})
}

// A session that was away while the lock came free has it as soon as it is back: it sends the heartbeat at once that is due
// in minutes.
func TestASessionThatIsBackIsHeardOfAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		m := fairlock.New(dial(t, s, silent()), "x")
		b, proxy := dialProxy(t, s, silent())
		first := lock(t, ctx, m)
		away := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		proxy.Refuse(true)
		redistest.Eventually(t, patience, "Redis to see that the session has no connection", func() bool {
			return !strings.Contains(strings.Join(s.Channels(t), " "), b.ID())
		})
		unlock(t, first)
		proxy.Refuse(false)
		unlock(t, granted(t, away, patience, "the waiter of the session that is back"))
		nothingLeft(t, s)
	})
}

// Waiters leave a run while another one of the session is about to join it: Redis counts all that
// wait, whatever it is told first.
func TestLeavingARunThatOthersAreAboutToJoin(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		m := fairlock.New(dial(t, s, silent()), "x")
		cfg := silent()
		trace, waiting := locktest.Waiting()
		cfg.Trace = trace
		b, client := locktest.DialGated(t, s, cfg)
		fair := fairlock.New(b, "x")
		first := lock(t, ctx, m)
		stays := goQueued(t, ctx, fair, 1)
		var all []<-chan locked
		var leave []context.CancelFunc
		for i := range 2 {
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			all, leave = append(all, goQueued(t, own, fair, i+2)), append(leave, cancel)
		}
		seen, release := client.Hold(runs("acquire"))
		defer release()
		leave[0]()
		locktest.Get(t, seen, patience, "the call that says that a waiter has left is about to be written")
		for range 3 {
			<-waiting
		}
		joins := goLock(ctx, fair)
		locktest.Get(t, waiting, patience, "one comes that is to join them")
		leave[1]()
		for _, c := range all {
			is(t, "a waiter that leaves", locktest.Get(t, c, patience, "Lock returns").err, context.Canceled)
		}
		release()
		queued(t, m, 2)
		unlock(t, first)
		unlock(t, granted(t, stays, patience, "the one that stays"))
		unlock(t, granted(t, joins, patience, "the one that joins"))
		nothingLeft(t, s)
	})
}
