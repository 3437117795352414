package fairlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
	"relock/rlock"
)

// The tests of this file are what the first review of the package found.

// A first attempt that did not reach Redis, or whose reply was lost, is made again: the
// waiter has no heartbeat yet that could remind anybody of it.
func TestAttemptThatFailedIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"request", "reply"} {
		t.Run(lost, func(t *testing.T) {
			each(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, patience)
				a := dial(t, s, rlock.Config{})
				b, proxy := dialProxy(t, s, rlock.Config{})
				first := lock(t, ctx, fairlock.New(a, "x"))
				if lost == "request" {
					proxy.DropRequest(runs("acquire"))
				} else {
					proxy.DropReply(runs("acquire"))
				}
				next := goLock(ctx, fairlock.New(b, "x"))
				redistest.Eventually(t, 5*time.Second, "the waiter to queue", func() bool {
					n, err := fairlock.New(a, "x").Waiters(ctx)
					must(t, err)
					return n == 1
				})
				unlock(t, first)
				unlock(t, granted(t, next, 5*time.Second, "the waiter"))
			})
		})
	}
}

// The same with a free lock.
func TestAttemptOnAFreeLockIsMadeAgain(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		b, proxy := dialProxy(t, s, rlock.Config{})
		proxy.DropRequest(runs("acquire"))
		unlock(t, granted(t, goLock(within(t, patience), fairlock.New(b, "x")), 5*time.Second, "the only one"))
	})
}

// A hold that was let in by message is trusted for the claim time only. When the renewal
// that confirms it fails for a moment, the next must come before that is over, not a
// twentieth of the lease later.
func TestUnconfirmedHoldIsRenewedAgainInTime(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, stalls := within(t, patience), locktest.WatchStalls(t)
		trace, parked := locktest.Waiting()
		cfg := rlock.Config{Lease: 5 * time.Minute} // claim: 1.25 s
		a := dial(t, s, cfg)
		cfg.Trace = trace
		b, proxy := dialProxy(t, s, cfg)
		first := lock(t, ctx, fairlock.New(a, "x"))
		next := goLock(ctx, fairlock.New(b, "x"))
		<-parked
		proxy.DropReply(renews(t))
		unlock(t, first)
		l := granted(t, next, patience, "the waiter")
		redistest.Eventually(t, patience, "the renewal to be sent again", func() bool {
			if cause := context.Cause(l.ctx); stalls.Excuse(cause, waiting.GrantLease) {
				t.Skip("the machine stood still for too long to renew it in time; the bubble judges")
			} else if cause != nil {
				t.Fatalf("the hold ended: %v", cause)
			}
			return l.hold.Remaining() > time.Minute
		})
		unlock(t, l)
	})
}

// A fixed lease that is shorter than the claim time ends when it ends, also if the lock
// was handed over.
func TestFixedLeaseShorterThanTheClaim(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		cfg := rlock.Config{QueueLease: 20 * time.Second, PollFloor: 500 * time.Millisecond} // claim: 5 s
		a, b := dial(t, s, cfg), dial(t, s, cfg)
		first := lock(t, ctx, fairlock.New(a, "x"))
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1, rlock.Lease(300*time.Millisecond))
		third := goQueued(t, ctx, fairlock.New(a, "x"), 2)
		unlock(t, first)
		l := granted(t, next, 5*time.Second, "the one with a fixed lease")
		began := time.Now()
		ends(t, l.ctx, 300*time.Millisecond+s.Slack(), rlock.ErrLost)
		unlock(t, granted(t, third, 10*time.Second, "the third"))
		if d := time.Since(began); d > 300*time.Millisecond+500*time.Millisecond+s.Slack() {
			t.Errorf("a fixed lease of 300ms kept the next waiter out for %v", d)
		}
	})
}

// A waiter is told when what it waits for is no lock any more.
func TestWaiterIsToldOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"x", "relock_line1:{x}"} {
		t.Run(key, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, patience)
				a := dial(t, s, short(s))
				m := fairlock.New(a, "x")
				must(t, s.Do(t, "HSET", "x", "somebody", "1").Error())
				must(t, s.Do(t, "PEXPIRE", "x", "3600000").Error())
				next := goQueued(t, ctx, m, 1)
				must(t, s.Do(t, "SET", key, "a string").Error())
				l := locktest.Get(t, next, patience, "Lock returns")
				if l.err == nil || !hasText(l.err, "WRONGTYPE") {
					t.Errorf("got %v, want WRONGTYPE", l.err)
				}
				s.FlushAll(t)
			})
		})
	}
}

// One owner that takes a name as a plain mutex and, inside, as a fair one: refused, or
// right, but not stuck.
func TestOneOwnerUsesBothKinds(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a := dial(t, s, rlock.Config{})
		for name, m := range map[string][2]locker{
			"plain outside": {rlock.New(a, "x"), fairlock.New(a, "x")},
			"fair outside":  {fairlock.New(a, "x"), rlock.New(a, "x")},
		} {
			section, outer, err := m[0].Lock(ctx)
			must(t, err)
			_, inner, err := m[1].Lock(section)
			if err == nil {
				if err := inner.Unlock(); err != nil {
					t.Errorf("%s: inner Unlock: %v", name, err)
				}
			} else {
				is(t, name, err, rlock.ErrArgument)
			}
			if err := outer.Unlock(); err != nil {
				t.Errorf("%s: Unlock: %v", name, err)
			}
			if keys := s.Keys(t); len(keys) != 0 {
				t.Errorf("%s: left behind: %q", name, keys)
				s.FlushAll(t)
			}
		}
	})
}

// The waiters of a session on one lock are heard of together, whenever they came: a
// session sends a heartbeat a second, not one for each tenth of a second in which a waiter came.
func TestHeartbeatsOfASessionAreSentTogether(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	s := redistest.Real(t)
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	a := dial(t, s, rlock.Config{})
	first := lock(t, ctx, fairlock.New(a, "x"))
	b, proxy := dialProxy(t, s, rlock.Config{})
	var all []<-chan locked
	for range 30 {
		all = append(all, goLock(ctx, fairlock.New(b, "x")))
		pause(50 * time.Millisecond) // they come over one and a half seconds
	}
	queued(t, fairlock.New(a, "x"), 30)
	pause(3 * time.Second) // to get in step
	proxy.Reset()
	pause(4 * time.Second)
	if n := locktest.Sent(proxy, runs("look")); n > 8 {
		t.Errorf("%d heartbeats in 4 s for 30 waiters of one session, want one a second", n)
	} else {
		t.Logf("%d heartbeats in 4 s", n)
	}
	cancel()
	for _, c := range all {
		<-c
	}
	unlock(t, first)
}

// A waiter is judged by the QueueLease of its own session, not by that of the session
// that lets the next one in: its heartbeats are as far apart as that says.
func TestSessionsWithDifferentQueueLeases(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		hasty := dial(t, s, rlock.Config{QueueLease: s.Slowed(400 * time.Millisecond)})
		calm := dial(t, s, rlock.Config{QueueLease: time.Minute})
		m := fairlock.New(hasty, "x")
		first := lock(t, ctx, m)
		next := goQueued(t, ctx, fairlock.New(calm, "x"), 1)
		last := goLock(ctx, m)
		pause(time.Second) // not a heartbeat of the calm one's, many of the hasty one's
		unlock(t, first)
		select {
		case l := <-next:
			must(t, l.err)
			waits(t, last, "the last")
			unlock(t, l)
			unlock(t, granted(t, last, patience, "the last"))
		case l := <-last:
			t.Error("the last was served first")
			unlock(t, l)
			unlock(t, granted(t, next, patience, "the first"))
		}
	})
}

// How long a hold that was handed over may be trusted before it is confirmed, and how long
// Redis keeps it so, is one time: that of the session that got it, whichever let it in.
func TestClaimOfASessionWithAShorterQueueLease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		hasty := dial(t, s, rlock.Config{QueueLease: 2 * time.Second})                                               // claim: 500 ms
		calm, proxy := dialProxy(t, s, rlock.Config{QueueLease: 8 * time.Second, PollFloor: 300 * time.Millisecond}) // 2 s
		m := fairlock.New(hasty, "x")
		first := lock(t, ctx, m)
		next := goQueued(t, ctx, fairlock.New(calm, "x"), 1)
		last := goQueued(t, ctx, m, 2)
		_, release := proxy.HoldRequest(renews(t)) // the hold is not confirmed
		defer release()
		unlock(t, first)
		l := granted(t, next, patience, "the calm one")
		unlock(t, granted(t, last, patience, "the last")) // Redis gave it away
		ended(t, l.ctx, rlock.ErrLost)                    // else two are inside
		release()
	})
}

// A late copy of the acquisition does not shorten what Extend has lengthened.
func TestDuplicateAcquireAfterExtend(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		b, proxy := dialProxy(t, s, rlock.Config{})
		l := lock(t, ctx, fairlock.New(b, "x"), rlock.Lease(2*time.Second))
		must(t, l.hold.Extend(ctx, 20*time.Second))
		var again string
		for _, line := range proxy.Log() {
			if runs("acquire")([]string{"EVALSHA", strings.Split(line+" ", " ")[1]}) {
				again = line
			}
		}
		must(t, s.Do(t, strings.Split(again, " ")...).Error())
		ttl, err := s.Do(t, "PTTL", "x").AsInt64()
		must(t, err)
		if left := l.hold.Remaining(); left > time.Duration(ttl)*time.Millisecond {
			t.Errorf("trusted for %v, Redis keeps it for %d ms", left, ttl)
		}
		unlock(t, l)
	})
}

// A session that may not subscribe is served too, however many others may.
func TestDeafWaiterIsServed(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a := dial(t, s, short(s))
		proxy := newProxy(t, s)
		proxy.RefuseCommand("SUBSCRIBE", "NOPERM no channels for you")
		deaf := dialVia(t, s, proxy, short(s))
		first := lock(t, ctx, fairlock.New(a, "x"))
		served := goQueued(t, ctx, fairlock.New(deaf, "x"), 1)
		others, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		for range 3 { // there is always one of these in the queue
			go func() {
				for others.Err() == nil {
					_ = fairlock.New(a, "x").Do(others, func(context.Context) error { pause(20 * time.Millisecond); return nil })
				}
				done <- struct{}{}
			}()
		}
		queued(t, fairlock.New(a, "x"), 4)
		unlock(t, first)
		select {
		case l := <-served:
			must(t, l.err)
			unlock(t, l)
		case <-time.After(patience):
			t.Error("not served")
		}
		stop()
		for range 3 {
			<-done
		}
	})
}
