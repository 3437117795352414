package fault_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R13: every message gets lost. The poll floor is all that a waiter has: the lease is
// far too long to explain that it gets in.
func TestFaultLostMessagesCostNoMoreThanThePollFloor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const floor = 300 * time.Millisecond
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: floor, Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		p.DropMessages(true)
		for range 3 {
			_, h, err := rlock.New(holder, name).Lock(ctx)
			must(t, err)
			next := locktest.GoLock(rlock.New(ses, name), ctx)
			locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
			must(t, h.Unlock())
			from := time.Now()
			got := locktest.Get(t, next, 5*time.Second, "the waiter's Lock")
			must(t, got.Err)
			if d := got.At.Sub(from); d > floor+s.Slack() {
				t.Errorf("the waiter got the lock %v after its release; the poll floor is %v", d, floor)
			}
			must(t, got.Hold.Unlock())
		}
	})
}

// R13: the subscriber's connection breaks, and the message falls into the gap.
func TestFaultBrokenConnectionWakesTheWaiter(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: 20 * time.Second, Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		next := locktest.GoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		p.Refuse(true)
		must(t, h.Unlock())
		p.Refuse(false)
		from := time.Now()
		got := locktest.Get(t, next, 15*time.Second, "the waiter's Lock")
		must(t, got.Err)
		if d := got.At.Sub(from); d > 8*time.Second {
			t.Errorf("the waiter got the lock after %v", d)
		}
		must(t, got.Hold.Unlock())
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
		if d := time.Since(from); d > lease+s.Slack() {
			t.Errorf("Lock took %v", d)
		}
		must(t, h.Unlock())
	})
}

// Redis goes down while a waiter sleeps in the queue; it is back before the deadline, without
// data. The waiter gets the lock.
func TestFaultWaiterOutlivesARestart(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{Trace: trace, PollFloor: 20 * time.Second})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		must(t, s.Do(t, "HSET", name, "an owner that never comes back", "1").Error())
		must(t, s.Do(t, "PEXPIRE", name, "3600000").Error())
		next := locktest.GoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		s.Restart(t)
		got := locktest.Get(t, next, 15*time.Second, "the waiter's Lock")
		must(t, got.Err)
		if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" {
			t.Fatalf("count %q", n)
		}
		must(t, got.Hold.Unlock())
	})
}

// A queue of waiters, and the one in front is cancelled just when its attempt is on its way, for a
// release has called it; or just when the message is on its way that grants it the lock. What woke it,
// or was given to it, is not lost for those behind. A release names no key of tokens unless its own claim
// has some: so it calls a fenced waiter.
func TestFaultCancelledFrontPassesTheWakeUpOn(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, granted := range []bool{false, true} {
			trace, waiting := locktest.Waiting()
			ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: trace, PollFloor: 20 * time.Second})
			holder := dial(t, s, rlock.Config{})
			ctx := within(t, 60*time.Second)
			name := redistest.Name(t)
			m := rlock.New(ses, name)
			if !granted {
				m = rlock.New(ses, name, rlock.Fenced())
			}
			_, h, err := rlock.New(holder, name).Lock(ctx)
			must(t, err)
			_, aside, err := rlock.New(holder, name+"2").Lock(ctx)
			must(t, err)
			first, cancel := context.WithCancel(ctx)
			defer cancel()
			front := locktest.GoLock(m, first)
			locktest.Get(t, waiting, 5*time.Second, "the front waits")
			locktest.Subscribed(t, s, 2)
			redistest.Eventually(t, 5*time.Second, "Redis knows that the front listens", func() bool {
				return s.Do(t, "ZSCORE", "relock_line1:{"+name+"}", "l"+ses.ID()).Error() == nil
			})
			back := locktest.GoLock(m, ctx)
			locktest.Get(t, waiting, 5*time.Second, "the one behind waits")
			var seen <-chan struct{}
			var release func()
			if granted { // what follows on the subscriber's connection is held back behind this
				seen, release = p.HoldReply(faulttest.Is("SUBSCRIBE"))
				over, stop := context.WithCancel(ctx)
				defer stop()
				asideToo := locktest.GoLock(rlock.New(ses, name+"2"), over)
				locktest.Get(t, seen, 5*time.Second, "another subscription")
				defer func() {
					stop()
					locktest.Get(t, asideToo, 5*time.Second, "the other waiter")
				}()
			} else {
				seen, release = p.HoldReply(locktest.Calls(t, "acquire"))
			}
			defer release()
			must(t, h.Unlock())
			if granted && locktest.Free(t, s, name) {
				t.Error("the release granted the lock to nobody")
			}
			locktest.Get(t, seen, 5*time.Second, "the front's attempt, or its grant")
			cancel()
			locktest.Is(t, "the front's Lock", locktest.Get(t, front, 5*time.Second, "the front's Lock").Err, rlock.ErrNotAcquired, context.Canceled)
			release()
			got := locktest.Get(t, back, 5*time.Second, "the Lock of the one behind")
			must(t, got.Err)
			must(t, got.Hold.Unlock())
			must(t, aside.Unlock())
		}
	})
}

// Mutual exclusion in a network that breaks all the time.
func TestFaultBrokenNetworkNeverLetsTwoIn(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		name := redistest.Name(t)
		ctx := within(t, 60*time.Second)
		var inside, violations, rounds atomic.Int64
		done := make(chan struct{})
		var workers []<-chan error
		a, p := locktest.DialProxy(t, s, rlock.Config{Lease: 3 * time.Second, PollFloor: 200 * time.Millisecond})
		b, q := locktest.DialProxy(t, s, rlock.Config{Lease: 3 * time.Second, PollFloor: 200 * time.Millisecond})
		for i := range 8 {
			ses := a
			if i%2 == 1 {
				ses = b
			}
			lockCtx := ctx
			if i >= 6 {
				lockCtx = rlock.WithOwner(ctx, []string{"order-17", "order-18"}[i-6])
			}
			workers = append(workers, locktest.Go(func() error {
				return lockUntil(done, rlock.New(ses, name), lockCtx, func(section context.Context) {
					if inside.Add(1) > 1 && section.Err() == nil {
						violations.Add(1)
					}
					rounds.Add(1)
					inside.Add(-1)
				})
			}))
		}
		cuts := 15
		if testing.Short() {
			cuts = 4
		}
		for range cuts {
			for _, proxy := range []interface {
				Cut()
				DropReply(func([]string) bool)
				DropRequest(func([]string) bool)
			}{p, q} {
				proxy.DropReply(locktest.Calls(t, "acquire"))
				proxy.DropReply(locktest.Calls(t, "release"))
				proxy.DropRequest(locktest.Calls(t, "release"))
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
		redistest.Eventually(t, 5*time.Second, "the lock is free", func() bool { return locktest.Free(t, s, name) })
	})
}

// lockUntil takes and releases a lock over and over, on a network that breaks.
func lockUntil(done <-chan struct{}, m *rlock.Mutex, ctx context.Context, inside func(section context.Context)) error {
	for {
		select {
		case <-done:
			return nil
		default:
		}
		section, h, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		inside(section)
		// An Unlock that meets a cut at each of its tries is done in the background.
		if err := h.Unlock(); err != nil && !errors.Is(err, rlock.ErrUnavailable) {
			return err
		}
	}
}
