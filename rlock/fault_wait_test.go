package rlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func faultLockChannel(name string) string { return "redisson_lock__channel:{" + name + "}" }

// R13: every message gets lost. The poll floor is all that a waiter has: the lease is
// far too long to explain that it gets in.
func TestFaultLostMessagesCostNoMoreThanThePollFloor(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const floor = 300 * time.Millisecond
		trace, waiting := locktest.Waiting()
		ses, p := faultDial(t, s, rlock.Config{PollFloor: floor, Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		p.DropMessages(true)
		for range 3 {
			_, h, err := rlock.New(holder, name).Lock(ctx)
			must(t, err)
			next := faultGoLock(rlock.New(ses, name), ctx)
			locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
			must(t, h.Unlock())
			from := time.Now()
			got := locktest.Get(t, next, 5*time.Second, "the waiter's Lock")
			must(t, got.err)
			if d := got.at.Sub(from); d > floor+faultSlack {
				t.Errorf("the waiter got the lock %v after its release; the poll floor is %v", d, floor)
			}
			must(t, got.hold.Unlock())
		}
	})
}

// R13: the waiters' subscription is refused, as by an ACL without the channels. They
// poll.
func TestFaultRefusedSubscriptionCostsNoMoreThanThePollFloor(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const floor = 300 * time.Millisecond
		ses, p := faultDial(t, s, rlock.Config{PollFloor: floor})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		for range 3 {
			_, h, err := rlock.New(holder, name).Lock(ctx)
			must(t, err)
			p.Reset()
			next := faultGoLock(rlock.New(ses, name), ctx)
			redistest.Eventually(t, 5*time.Second, "the waiter polls", func() bool { return faultSent(t, p, "acquire") >= 3 })
			must(t, h.Unlock())
			from := time.Now()
			got := locktest.Get(t, next, 5*time.Second, "the waiter's Lock")
			must(t, got.err)
			if d := got.at.Sub(from); d > floor+faultSlack {
				t.Errorf("the waiter got the lock %v after its release; the poll floor is %v", d, floor)
			}
			must(t, got.hold.Unlock())
		}
	})
}

// R13, R15: polling in place of a subscription backs off: a waiter costs a handful of
// commands while it does, and then one for each poll floor.
func TestFaultRefusedSubscriptionMakesNoStorm(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		holder := dial(t, s, rlock.Config{})
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		defer cancel()
		name := redistest.Name(t)
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		p.Reset()
		next := faultGoLock(rlock.New(ses, name), ctx)
		<-time.After(3 * time.Second)
		// Doubling from 10 ms to the floor of 2 s are ten attempts and a few.
		if n := p.Count(); n > 30 {
			t.Errorf("a waiter without a subscription sent %d commands in 3 s", n)
		}
		cancel()
		locktest.Is(t, "Lock", locktest.Get(t, next, 5*time.Second, "Lock").err, rlock.ErrNotAcquired, context.Canceled)
		must(t, h.Unlock())
	})
}

// R13: when the refusal ends a waiter that polls subscribes, and is woken by messages
// again: with this poll floor nothing else explains the speed.
func TestFaultRefusedSubscriptionHeals(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := faultDial(t, s, rlock.Config{PollFloor: 10 * time.Second, Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		next := faultGoLock(rlock.New(ses, name), ctx)
		redistest.Eventually(t, 10*time.Second, "the waiter polls", func() bool { return faultSent(t, p, "acquire") >= 3 })
		p.RefuseCommand("SUBSCRIBE", "")
		locktest.Get(t, waiting, 20*time.Second, "the waiter sleeps until it is woken")
		if !slices.Contains(s.Channels(t), faultLockChannel(name)) {
			t.Errorf("the waiter sleeps without a subscription: %q", s.Channels(t))
		}
		must(t, h.Unlock())
		from := time.Now()
		got := locktest.Get(t, next, 15*time.Second, "the waiter's Lock")
		must(t, got.err)
		if d := got.at.Sub(from); d > 4*time.Second {
			t.Errorf("the waiter got the lock %v after its release; no message explains that", d)
		}
		must(t, got.hold.Unlock())
	})
}

// R13: the server neither confirms nor refuses the subscription for a while. The waiter
// does not depend on it.
func TestFaultUnconfirmedSubscriptionCostsNoMoreThanThePollFloor(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const floor = 300 * time.Millisecond
		ses, p := faultDial(t, s, rlock.Config{PollFloor: floor})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		seen, release := p.HoldReply(func(cmd []string) bool {
			return strings.EqualFold(cmd[0], "SUBSCRIBE") && slices.Contains(cmd, faultLockChannel(name))
		})
		defer release()
		next := faultGoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, seen, 5*time.Second, "the subscription")
		must(t, h.Unlock())
		from := time.Now()
		got := locktest.Get(t, next, 10*time.Second, "the waiter's Lock")
		must(t, got.err)
		if d := got.at.Sub(from); d > floor+faultSlack {
			t.Errorf("the waiter got the lock %v after its release; the poll floor is %v", d, floor)
		}
		must(t, got.hold.Unlock())
	})
}

// R13: the subscriber's connection breaks, and the message falls into the gap.
func TestFaultBrokenConnectionWakesTheWaiter(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := faultDial(t, s, rlock.Config{PollFloor: 20 * time.Second, Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		next := faultGoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		p.Refuse(true)
		must(t, h.Unlock())
		p.Refuse(false)
		from := time.Now()
		got := locktest.Get(t, next, 15*time.Second, "the waiter's Lock")
		must(t, got.err)
		if d := got.at.Sub(from); d > 8*time.Second {
			t.Errorf("the waiter got the lock after %v", d)
		}
		must(t, got.hold.Unlock())
	})
}

// A holder that dies without a word: the waiter gets in when the lease is over, without
// any message, and not a poll floor later.
func TestFaultExpiredLockIsTakenWithoutAMessage(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 1500 * time.Millisecond
		ses := dial(t, s, rlock.Config{PollFloor: 20 * time.Second})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		must(t, s.Do(t, "HSET", name, "a dead owner", "1").Error())
		must(t, s.Do(t, "PEXPIRE", name, "1500").Error())
		from := time.Now()
		_, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		if d := time.Since(from); d > lease+faultSlack {
			t.Errorf("Lock took %v", d)
		}
		must(t, h.Unlock())
	})
}

// R30: a key of another type. Redis says so at once; nothing is changed, nothing of
// ours is matched.
func TestFaultKeyOfAnotherTypeEndsLockAtOnce(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		must(t, s.Do(t, "SET", name, "something else").Error())
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			for _, m := range []*rlock.Mutex{rlock.New(ses, name), rlock.New(ses, name, rlock.Fenced())} {
				_, _, err1 := m.Lock(lockCtx)
				_, _, err2 := m.TryLock(lockCtx)
				err3 := m.Do(lockCtx, func(context.Context) error { t.Error("Do ran fn"); return nil })
				_, err4 := m.State(lockCtx)
				_, err5 := m.ForceUnlock(lockCtx)
				for i, err := range []error{err1, err2, err3, err4, err5} {
					what := []string{"Lock", "TryLock", "Do", "State", "ForceUnlock"}[i]
					faultNoSentinel(t, what, err)
					if !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), name) {
						t.Errorf("%s: %q names neither the type nor the lock", what, err)
					}
				}
			}
		}
		if ctx.Err() != nil {
			t.Error("they waited for ctx's end")
		}
		if v, err := s.Do(t, "GET", name).ToString(); err != nil || v != "something else" {
			t.Errorf("the key is now %q (%v)", v, err)
		}
		if keys := s.Keys(t); len(keys) != 1 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// A permission that is missing does not come back by asking again.
func TestFaultMissingPermissionEndsLockAtOnce(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := faultDial(t, s, rlock.Config{PollFloor: 300 * time.Millisecond, Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		refuse := func(on bool) {
			text := ""
			if on {
				text = "NOPERM this user has no permissions to run the command"
			}
			p.RefuseCommand("EVALSHA", text)
			p.RefuseCommand("EVAL", text)
		}
		check := func(what string, err error) {
			t.Helper()
			faultNoSentinel(t, what, err)
			if !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s: %q does not say why", what, err)
			}
		}
		m := rlock.New(ses, name)
		refuse(true)
		_, _, err := m.Lock(ctx)
		check("Lock", err)
		_, _, err = m.TryLock(rlock.WithOwner(ctx, "order-17"))
		check("TryLock", err)
		refuse(false)

		// Also for one that waits already: it finds out when it looks again.
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		next := faultGoLock(m, ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		refuse(true)
		check("the waiter's Lock", locktest.Get(t, next, 5*time.Second, "the waiter's Lock").err)
		refuse(false)
		must(t, h.Unlock())

		// A release that is refused is reported too, and is not made up for.
		_, h, err = m.Lock(ctx)
		must(t, err)
		refuse(true)
		check("Unlock", h.Unlock())
		refuse(false)
	})
}

// Errors that pass by themselves: a server that loads, a Cluster in motion.
func TestFaultTransientErrorsAreWaitedFor(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, failed := faultFailed()
		ses, p := faultDial(t, s, rlock.Config{Trace: trace})
		ctx := within(t, 60*time.Second)
		for _, text := range []string{
			"LOADING Redis is loading the dataset in memory",
			"CLUSTERDOWN The cluster is down",
			"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
			"READONLY You can't write against a read only replica.",
			"TRYAGAIN Multiple keys request during rehashing of slot",
			"NOREPLICAS Not enough good replicas to write.",
			"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		} {
			for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
				name := redistest.Name(t)
				m := rlock.New(ses, name)
				for len(failed) > 0 {
					<-failed
				}
				p.RefuseCommand("EVALSHA", text)
				next := faultGoLock(m, lockCtx)
				for range 3 {
					locktest.Get(t, failed, 10*time.Second, "a failed attempt")
				}
				// TryLock does not wait, and says why.
				_, _, err := m.TryLock(ctx)
				if faultNoSentinel(t, "TryLock", err); !strings.Contains(err.Error(), text) {
					t.Errorf("TryLock: %q does not show %q", err, text)
				}
				p.RefuseCommand("EVALSHA", "")
				got := locktest.Get(t, next, 10*time.Second, "Lock")
				must(t, got.err)
				if n := faultCount(t, s, name, got.hold.Owner()); n != "1" {
					t.Fatalf("%s: count %q", text, n)
				}
				// A release waits for the server as well.
				p.RefuseCommand("EVALSHA", text)
				unlocked := faultGo(got.hold.Unlock)
				faultStays(t, ctx, 50*time.Millisecond)
				p.RefuseCommand("EVALSHA", "")
				must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
				if !faultFree(t, s, name) {
					t.Fatalf("%s: not free", text)
				}
			}
		}
	})
}

// Redis is down while Lock waits: when ctx ends the error tells that, and that it was
// Redis, not somebody else's lock.
func faultDown(t *testing.T, wait bool, down func(s *redistest.Server)) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		if down != nil {
			down(s)
		} else {
			p.Refuse(true)
		}
		var errs []error
		for range 5 {
			var err error
			from := time.Now()
			if wait {
				_, _, err = m.Lock(context.Background(), rlock.Wait(300*time.Millisecond))
			} else {
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				_, _, err = m.Lock(ctx)
				locktest.Is(t, "Lock", err, context.DeadlineExceeded)
			}
			if d := time.Since(from); d > 300*time.Millisecond+faultSlack {
				t.Errorf("Lock took %v", d)
			}
			locktest.Is(t, "Lock", err, rlock.ErrNotAcquired)
			errs = append(errs, err)
		}
		for _, err := range errs {
			if !strings.Contains(err.Error(), "last attempt") {
				t.Errorf("%q does not show the client's error", err)
			}
		}
		_, _, err := m.TryLock(within(t, 10*time.Second))
		faultNoSentinel(t, "TryLock", err)

		if down != nil {
			s.Restart(t)
		} else {
			p.Refuse(false)
		}
		_, h, err := m.Lock(within(t, 20*time.Second))
		must(t, err)
		must(t, h.Unlock())
	})
}

func TestFaultRefusedConnectionShowsWhenTheDeadlineIsOver(t *testing.T) { faultDown(t, false, nil) }

func TestFaultRefusedConnectionShowsWhenWaitIsOver(t *testing.T) { faultDown(t, true, nil) }

func TestFaultDeadServerShowsWhenTheDeadlineIsOver(t *testing.T) {
	faultDown(t, false, (*redistest.Server).Kill)
}

// Redis goes down while a waiter sleeps in the queue; it is back before the deadline, without
// data. The waiter gets the lock.
func TestFaultWaiterOutlivesARestart(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{Trace: trace, PollFloor: 20 * time.Second})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		must(t, s.Do(t, "HSET", name, "an owner that never comes back", "1").Error())
		must(t, s.Do(t, "PEXPIRE", name, "3600000").Error())
		next := faultGoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		s.Restart(t)
		got := locktest.Get(t, next, 15*time.Second, "the waiter's Lock")
		must(t, got.err)
		if n := faultCount(t, s, name, got.hold.Owner()); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, got.hold.Unlock())
	})
}

// A line of waiters, and the one in front is cancelled just when its attempt is on its
// way: what woke it is not lost for those behind.
func TestFaultCancelledFrontPassesTheWakeUpOn(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := faultDial(t, s, rlock.Config{Trace: trace, PollFloor: 20 * time.Second})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		first, cancel := context.WithCancel(ctx)
		defer cancel()
		front := faultGoLock(m, first)
		locktest.Get(t, waiting, 5*time.Second, "the front waits")
		back := faultGoLock(m, ctx)
		locktest.Get(t, waiting, 5*time.Second, "the one behind waits")
		seen, release := p.HoldReply(faultRuns(t, "acquire"))
		defer release()
		must(t, h.Unlock())
		locktest.Get(t, seen, 5*time.Second, "the front's attempt")
		cancel()
		locktest.Is(t, "the front's Lock", locktest.Get(t, front, 5*time.Second, "the front's Lock").err, rlock.ErrNotAcquired, context.Canceled)
		release()
		got := locktest.Get(t, back, 5*time.Second, "the Lock of the one behind")
		must(t, got.err)
		must(t, got.hold.Unlock())
	})
}

// Mutual exclusion in a network that breaks all the time.
func TestFaultBrokenNetworkNeverLetsTwoIn(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		name := redistest.Name(t)
		ctx := within(t, 60*time.Second)
		var inside, violations, rounds atomic.Int64
		done := make(chan struct{})
		var workers []<-chan error
		a, p := faultDial(t, s, rlock.Config{Lease: 3 * time.Second, PollFloor: 200 * time.Millisecond})
		b, q := faultDial(t, s, rlock.Config{Lease: 3 * time.Second, PollFloor: 200 * time.Millisecond})
		for i := range 8 {
			ses := a
			if i%2 == 1 {
				ses = b
			}
			lockCtx := ctx
			if i >= 6 {
				lockCtx = rlock.WithOwner(ctx, []string{"order-17", "order-18"}[i-6])
			}
			workers = append(workers, faultGo(func() error {
				m := rlock.New(ses, name)
				for {
					select {
					case <-done:
						return nil
					default:
					}
					section, h, err := m.Lock(lockCtx)
					if err != nil {
						return err
					}
					if inside.Add(1) > 1 && section.Err() == nil {
						violations.Add(1)
					}
					rounds.Add(1)
					inside.Add(-1)
					// An Unlock that meets a cut at each of its tries is done in the background.
					if err := h.Unlock(); err != nil && !errors.Is(err, rlock.ErrUnavailable) {
						return err
					}
				}
			}))
		}
		for range 15 {
			for _, proxy := range []interface {
				Cut()
				DropReply(func([]string) bool)
				DropRequest(func([]string) bool)
			}{p, q} {
				proxy.DropReply(faultRuns(t, "acquire"))
				proxy.DropReply(faultRuns(t, "release"))
				proxy.DropRequest(faultRuns(t, "release"))
				proxy.Cut()
			}
			before := rounds.Load()
			redistest.Eventually(t, 10*time.Second, "progress", func() bool { return rounds.Load() > before+10 })
		}
		close(done)
		for _, w := range workers {
			must(t, locktest.Get(t, w, 20*time.Second, "a worker's end"))
		}
		if n := violations.Load(); n > 0 {
			t.Errorf("%d times two were in", n)
		}
		redistest.Eventually(t, 5*time.Second, "the lock is free", func() bool { return faultFree(t, s, name) })
	})
}
