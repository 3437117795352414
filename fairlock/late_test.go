package fairlock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session closes while the attempt that queues a run is just being written: the release comes
// behind it, so that nothing stays in the queue.
func TestCloseWhileARunIsBeingQueued(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		m := fairlock.New(dial(t, s, silent()), "x")
		b, client := locktest.DialGated(t, s, silent())
		first := lock(t, ctx, m)
		one := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		seen, release := client.Hold(runs("acquire"))
		defer release()
		two := goLock(ctx, fairlock.New(b, "x"))
		locktest.Get(t, seen, patience, "the second waiter's attempt is about to be written")
		closed := goClose(b)
		is(t, "the first waiter", locktest.Get(t, one, patience, "Lock returns").err, rlock.ErrClosed)
		queued(t, m, 0)
		release()
		must(t, locktest.Get(t, closed, patience, "Close returns"))
		is(t, "the second waiter", locktest.Get(t, two, patience, "Lock returns").err, rlock.ErrClosed)
		if n, err := m.Waiters(ctx); err != nil || n != 0 {
			t.Errorf("%d waiters, %v, after the session has closed", n, err)
		}
		unlock(t, first)
		nothingLeft(t, s)
	})
}

// The message of a grant comes again when the claim is lost and its section is not unlocked yet:
// the lock is not released under it.
func TestGrantMessageAfterALoss(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a := dial(t, s, silent())
		m := fairlock.New(a, "x")
		b, proxy := dialProxy(t, s, rlock.Config{Lease: 4 * time.Second, QueueLease: 16 * time.Second, PollFloor: time.Hour})
		first := lock(t, ctx, m)
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		entries, err := s.Do(t, "ZRANGE", "relock_line1:{x}", "0", "0").AsStrSlice()
		must(t, err)
		unlock(t, first)
		l := granted(t, next, patience, "the waiter")
		redistest.Eventually(t, patience, "the grant to be confirmed", func() bool { return locktest.Sent(proxy, renews(t)) > 0 })
		proxy.RefuseCommand("EVALSHA", "BUSY for a while")
		ends(t, l.ctx, patience, rlock.ErrLost)
		proxy.RefuseCommand("EVALSHA", "")
		must(t, s.Do(t, "DEL", "x").Error()) // with what is left of its TTL
		// The lock stands for longer than the session thinks, as where Redis's clock is slow.
		must(t, s.Do(t, "HSET", "x", l.hold.Owner(), "1").Error())
		must(t, s.Do(t, "PEXPIRE", "x", "60000").Error())
		message := func(entry, key string) {
			payload := fmt.Sprintf("granted:%d:0:0:1:1:%d:%s%s", time.Now().UnixMilli(), len(entry), entry, key)
			must(t, s.Do(t, "PUBLISH", "relock_session:"+b.ID(), payload).Error())
		}
		message(entries[0], "x")
		message(entries[0]+"0", "y") // of an entry that the session does not know
		redistest.Eventually(t, patience, "the second grant to be given back", func() bool {
			return locktest.Sent(proxy, runs("release")) > 0
		})
		if n := locktest.Sent(proxy, runs("release")); n != 1 || count(t, m, l.hold.Owner()) != 1 {
			t.Errorf("%d releases were sent; the lock was released before its section was unlocked", n)
		}
		is(t, "Unlock", l.hold.Unlock(), rlock.ErrLost)
		nothingLeft(t, s)
	})
}

// An inner Unlock brings the end closer to what the outer hold deserves. Arriving late, or made up
// for later, it must not cut what the outer hold was given meanwhile.
func TestALateInnerUnlockDoesNotCutALaterExtend(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		cfg := silent()
		cfg.ReleaseTimeout = time.Second
		ses, p := dialProxy(t, s, cfg)
		ctx, m := within(t, patience), fairlock.New(ses, "x")
		outer := lock(t, ctx, m, rlock.Lease(5*time.Second))
		inner := lock(t, outer.ctx, m)
		trusted := func(when string) {
			t.Helper()
			if ms, err := s.Do(t, "PTTL", "x").AsInt64(); err != nil || ms < outer.hold.Remaining().Milliseconds() {
				t.Errorf("%s the lock lives for %d ms, %v; it is trusted for %v", when, ms, err, outer.hold.Remaining())
			}
		}
		var extended atomic.Bool
		release := runs("release")
		lost := func(cmd []string) bool { return !extended.Load() && release(cmd) }
		late := locktest.DropLate(p, lost, nil)
		for range 100 {
			p.DropRequest(lost)
		}
		if err := inner.hold.Unlock(); err == nil {
			t.Error("an inner Unlock without an answer returns nil")
		}
		must(t, outer.hold.Extend(ctx, 20*time.Second))
		late.Arrive(t, s)
		trusted("after the late release")
		extended.Store(true)
		redistest.Eventually(t, patience, "the inner hold is gone", func() bool {
			n, err := s.Do(t, "HGET", "x", outer.hold.Owner()).ToString()
			return err == nil && n == "1"
		})
		trusted("when the release is made up for")
		unlock(t, outer)
		nothingLeft(t, s)
	})
}

// A ForceUnlock runs twice, and the same owner name has the lock again by then, in another session: the new
// hold stays. (Scenario 30)
func TestAForceUnlockThatRunsTwiceLeavesTheSameOwnersNextHold(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		operator, p := dialProxy(t, s, silent())
		locktest.Forced{
			First: fairlock.New(dial(t, s, silent()), "x").Lock,
			Next:  fairlock.New(dial(t, s, silent()), "x").Lock,
			Force: fairlock.New(operator, "x").ForceUnlock, Proxy: p, Runs: runs("force_unlock"),
		}.StaysTheNext(t, s)
	})
}
