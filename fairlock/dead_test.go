package fairlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// However many waiters have died in front of it, a live one has the lock within one
// QueueLease of the release: here killed processes, whose end Redis gets to know (R18).
func TestKilledWaitersAreSkipped(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		a := dial(t, s, short(s))
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		const k = 5
		var kill []func()
		for i := range k {
			kill = append(kill, startChild(t, s, "x"))
			queued(t, m, i+1)
		}
		next := goQueued(t, ctx, fairlock.New(dial(t, s, short(s)), "x"), k+1)
		listening := func() int {
			channels, err := s.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
			must(t, err)
			return len(channels)
		}
		before := listening()
		for _, fn := range kill {
			fn()
		}
		redistest.Eventually(t, patience, "Redis to know of the end of each", func() bool { return listening() <= before-k })
		began := time.Now()
		unlock(t, first)
		l := granted(t, next, patience, "the live one")
		t.Logf("behind %d killed processes: %v", k, l.at.Sub(began))
		if d := l.at.Sub(began); d > fairlock.QueueLease(a) {
			t.Errorf("the live one had to wait for %v after the release, want one QueueLease, %v, at most", d, fairlock.QueueLease(a))
		}
		unlock(t, l)
	})
}

// The same where Redis believes that the dead hear: their connections are open, but nothing
// passes. When they are back among the living they queue again and are served (R19).
func TestSilentWaitersAreSkippedAndQueueAgain(t *testing.T) {
	t.Parallel()
	for _, k := range []int{1, 5, 30} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, 60*time.Second)
				cfg := short(s)
				cfg.QueueLease *= 2
				a := dial(t, s, cfg)
				m := fairlock.New(a, "x")
				first := lock(t, ctx, m)
				b, proxy := dialProxy(t, s, cfg)
				var cut []<-chan locked
				for i := range k {
					cut = append(cut, goQueued(t, ctx, fairlock.New(b, "x"), i+1))
				}
				next := goQueued(t, ctx, m, k+1)
				proxy.BlackHole(true)
				began := time.Now()
				unlock(t, first)
				l := granted(t, next, patience, "the live one")
				t.Logf("behind %d silent ones: %v", k, l.at.Sub(began))
				if d := l.at.Sub(began); d > cfg.QueueLease+cfg.QueueLease/6 { // a heartbeat later if the silent are let in
					t.Errorf("the live one had to wait for %v after the release, want one QueueLease, %v, at most", d, cfg.QueueLease)
				}
				// Silent for a QueueLease and more: their places are gone.
				pause(cfg.QueueLease - time.Since(began) + 10*time.Millisecond)
				redistest.Eventually(t, patience, "the silent ones to count no more", func() bool {
					n, err := m.Waiters(ctx)
					must(t, err)
					return n == 0
				})
				unlock(t, l)
				l = lock(t, ctx, m)
				if n, err := s.Do(t, "ZCOUNT", "relock_line1:{x}", "0", "4.8e15").AsInt64(); err != nil || n != 0 {
					t.Fatalf("%d of the dead are in the queue, %v", n, err)
				}
				proxy.BlackHole(false)
				queued(t, m, k)
				unlock(t, l)
				served := make(chan error, k)
				for _, c := range cut {
					go func() {
						l := <-c
						if l.err == nil {
							l.err = l.hold.Unlock()
						}
						served <- l.err
					}()
				}
				for range k {
					must(t, locktest.Get(t, served, patience, "those who were cut off have the lock too"))
				}
				nothingLeft(t, s)
			})
		})
	}
}

// A grant that is not taken up within the claim time passes on to the next waiter.
func TestGrantThatIsNotTakenUpPassesOn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		cfg := rlock.Config{QueueLease: 4 * time.Second, PollFloor: 200 * time.Millisecond} // claim: 1 s
		a := dial(t, s, cfg)
		b, proxy := dialProxy(t, s, cfg)
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		gone, stop := context.WithCancel(ctx)
		defer stop()
		dead := goQueued(t, gone, fairlock.New(b, "x"), 1)
		second := goQueued(t, ctx, m, 2)
		third := goQueued(t, ctx, m, 3)
		proxy.BlackHole(true)
		began := time.Now()
		unlock(t, first)
		owner := ownedByOther(t, m, first.hold.Owner())
		l := granted(t, second, patience, "the second")
		waits(t, third, "the third")
		if owner == l.hold.Owner() {
			t.Fatal("Redis did not let the silent one in, so nothing was shown")
		}
		if d := l.at.Sub(began); d < fairlock.QueueLease(a)/4*9/10 || d > fairlock.QueueLease(a)/4+cfg.PollFloor+min(s.Slack(), 2*time.Second) {
			t.Errorf("it passed on after %v, want %v and a poll floor of %v at most", d, fairlock.QueueLease(a)/4, cfg.PollFloor)
		}
		unlock(t, l)
		unlock(t, granted(t, third, patience, "the third"))
		stop()
		proxy.BlackHole(false)
		if l := locktest.Get(t, dead, patience, "the silent one returns"); l.err == nil {
			unlock(t, l)
		}
		nothingLeft(t, s)
	})
}

// A message that gets lost costs a poll floor, and no waiter its position in the queue (R13).
func TestLostMessageCostsABeat(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		cfg := rlock.Config{QueueLease: 20 * time.Second, PollFloor: 300 * time.Millisecond}
		a := dial(t, s, cfg)
		b, proxy := dialProxy(t, s, cfg)
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		last := goQueued(t, ctx, m, 2)
		proxy.DropMessages(true)
		began := time.Now()
		unlock(t, first)
		l := granted(t, next, patience, "the one that did not hear")
		if d := l.at.Sub(began); d > cfg.PollFloor*11/10+s.Slack() {
			t.Errorf("it took %v, want the poll floor of %v at most", d, cfg.PollFloor)
		}
		waits(t, last, "the last one")
		unlock(t, l)
		unlock(t, granted(t, last, patience, "the last one"))
		nothingLeft(t, s)
	})
}

// A waiter that leaves just when it was let in, without knowing, hands on what it was given
// at once: nobody waits for a clock, since none runs within the test.
func TestCancelledAtTheMomentOfTheGrant(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		a := dial(t, s, silent())
		b, proxy := dialProxy(t, s, silent())
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		leaver := goQueued(t, own, fairlock.New(b, "x"), 1, rlock.Lease(time.Minute)) // a run of one
		timedOut := goQueued(t, ctx, fairlock.New(b, "x"), 2, rlock.Wait(2*time.Second))
		last := goQueued(t, ctx, m, 3)
		proxy.DropMessages(true)
		unlock(t, first)
		owner := ownedByOther(t, m, first.hold.Owner())
		waits(t, leaver, "the first")
		cancel()
		l := locktest.Get(t, leaver, patience, "Lock returns")
		is(t, "the one that was cancelled", l.err, rlock.ErrNotAcquired, context.Canceled)
		if next := ownedByOther(t, m, owner); next == owner {
			t.Fatal("not passed on")
		}
		waits(t, last, "the last one")
		l = locktest.Get(t, timedOut, patience, "Lock returns")
		is(t, "the one whose time was over", l.err, rlock.ErrNotAcquired)
		unlock(t, granted(t, last, patience, "the last one"))
		nothingLeft(t, s)
	})
}

// A holder that dies without a word keeps the lock until its lease is over, and then the
// first waiter has it right away, not a heartbeat later.
func TestHolderDies(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		lease := s.Slowed(time.Second)
		a, proxy := dialProxy(t, s, rlock.Config{Lease: lease})
		b := dial(t, s, silent())
		first := lock(t, ctx, fairlock.New(a, "x"))
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		last := goQueued(t, ctx, fairlock.New(b, "x"), 2)
		pause(lease * 5 / 4) // the holder has been renewed, and the waiter has learnt that
		waits(t, next, "the waiter")
		proxy.Refuse(true)
		began := time.Now()
		l := granted(t, next, patience, "the waiter")
		ended(t, first.ctx, rlock.ErrLost) // else two are inside
		if d := l.at.Sub(began); d > lease+s.Slack() {
			t.Errorf("the waiter was let in %v after the holder's end, want %v at most", d, lease)
		}
		waits(t, last, "the last one")
		unlock(t, l)
		unlock(t, granted(t, last, patience, "the last one"))
		nothingLeft(t, s)
	})
}
