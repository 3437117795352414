package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R12. That no goroutine is left is checked by TestMain for all of these together.

// faultFarewell is what the subscriber's connection and the client may take, a second
// each, to close in a network that is silent.
const faultFarewell = 2 * time.Second

// faultAfterClose checks that nothing works any more, and says why.
func faultAfterClose(t *testing.T, ses *rlock.Session, name string) {
	t.Helper()
	m := rlock.New(ses, name)
	ctx := within(t, 5*time.Second)
	_, _, err := m.Lock(ctx)
	locktest.Is(t, "Lock after Close", err, rlock.ErrClosed)
	_, _, err = m.TryLock(rlock.WithOwner(ctx, "order-17"))
	locktest.Is(t, "TryLock after Close", err, rlock.ErrClosed)
	locktest.Is(t, "Do after Close", m.Do(ctx, func(context.Context) error { t.Error("Do ran fn"); return nil }), rlock.ErrClosed)
	_, err = m.State(ctx)
	locktest.Is(t, "State after Close", err, rlock.ErrClosed)
	_, err = m.ForceUnlock(ctx)
	locktest.Is(t, "ForceUnlock after Close", err, rlock.ErrClosed)
}

// faultLockKeys returns the keys that are there, apart from fencing tokens, which stay.
func faultLockKeys(t *testing.T, s *redistest.Server) (locks []string) {
	t.Helper()
	for _, k := range s.Keys(t) {
		if !strings.HasPrefix(k, "redisson_lock_token:") {
			locks = append(locks, k)
		}
	}
	return locks
}

func TestFaultCloseReleasesEverything(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		var sections []context.Context
		var holds []*rlock.Hold
		for i := range 10 {
			lockCtx := ctx
			var opts []rlock.LockOption
			switch i % 3 {
			case 1:
				lockCtx = rlock.WithOwner(ctx, fmt.Sprint("order-", i))
			case 2:
				opts = append(opts, rlock.Lease(20*time.Second))
			}
			m := rlock.New(ses, fmt.Sprint(name, i), rlock.Fenced())
			for range i%4 + 1 { // nested, some of them
				section, h, err := m.Lock(lockCtx, opts...)
				must(t, err)
				lockCtx = section
				sections, holds = append(sections, section), append(holds, h)
			}
		}
		must(t, ses.Close())
		for _, c := range sections {
			locktest.Ends(t, c, faultSlack, rlock.ErrClosed)
		}
		if left := faultLockKeys(t, s); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		for _, h := range holds {
			locktest.Is(t, "Unlock after Close", h.Unlock(), rlock.ErrClosed)
			locktest.Is(t, "second Unlock after Close", h.Unlock(), rlock.ErrNotHeld)
			if h.Remaining() != 0 {
				t.Error("time remains after Close")
			}
		}
		faultAfterClose(t, ses, name)
		must(t, ses.Close())
		redistest.Eventually(t, 5*time.Second, "no subscription is left", func() bool { return len(s.Channels(t)) == 0 })
	})
}

// What was lost before Close stays lost.
func TestFaultLostBeforeCloseStaysLost(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: time.Second})
		section, h, err := rlock.New(ses, redistest.Name(t)).Lock(within(t, 20*time.Second))
		must(t, err)
		s.FlushAll(t)
		locktest.Ends(t, section, time.Second+faultSlack, rlock.ErrLost)
		must(t, ses.Close())
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

func TestFaultConcurrentCloseIsOneClose(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, _, err := m.Lock(ctx)
		must(t, err)
		var closed []<-chan error
		for range 8 {
			closed = append(closed, faultGo(func() error {
				err := ses.Close()
				// Whichever Close returns first: it is all over by then.
				return errors.Join(err, func() error {
					if section.Err() == nil {
						return errors.New("Close returned, and a section goes on")
					}
					return nil
				}())
			}))
		}
		// Others are busy with the session all the while.
		var busy []<-chan error
		for i := range 8 {
			busy = append(busy, faultGo(func() error {
				for {
					_, h, err := rlock.New(ses, fmt.Sprint(name, i)).Lock(ctx)
					if err == nil {
						err = h.Unlock()
					}
					if err != nil {
						return err
					}
				}
			}))
		}
		for _, c := range closed {
			must(t, locktest.Get(t, c, 10*time.Second, "Close"))
		}
		for _, c := range busy {
			locktest.Is(t, "Lock or Unlock", locktest.Get(t, c, 10*time.Second, "a worker's end"), rlock.ErrClosed)
		}
		if left := faultLockKeys(t, s); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// Waiters in the queue, in front and behind, of one's own and of others' locks, by all kinds
// of owners.
func TestFaultCloseWakesTheWaiters(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		theirs, own := redistest.Name(t), redistest.Name(t)
		_, theirHold, err := rlock.New(holder, theirs).Lock(ctx)
		must(t, err)
		_, _, err = rlock.New(ses, own).Lock(ctx)
		must(t, err)
		var waiters []<-chan faultLocked
		for i := range 9 {
			lockCtx := ctx
			if i%3 == 2 {
				lockCtx = rlock.WithOwner(ctx, fmt.Sprint("order-", i))
			}
			waiters = append(waiters, faultGoLock(rlock.New(ses, theirs), lockCtx))
			locktest.Get(t, waiting, 5*time.Second, "a waiter waits")
			waiters = append(waiters, faultGoLock(rlock.New(ses, own), lockCtx, rlock.Wait(20*time.Second)))
			locktest.Get(t, waiting, 5*time.Second, "a waiter waits")
		}
		// One that waits for its own owner's turn.
		waiters = append(waiters, faultGoLock(rlock.New(ses, theirs), rlock.WithOwner(ctx, "order-2")))
		must(t, ses.Close())
		for _, w := range waiters {
			got := locktest.Get(t, w, 5*time.Second, "a waiter's Lock")
			locktest.Is(t, "a waiter's Lock", got.err, rlock.ErrClosed)
			if errors.Is(got.err, rlock.ErrNotAcquired) {
				t.Errorf("%v matches ErrNotAcquired too", got.err)
			}
			if got.hold != nil || got.ctx.Err() != nil {
				t.Errorf("hold %v, the context's end: %v", got.hold, got.ctx.Err())
			}
		}
		if left := faultLockKeys(t, s); len(left) != 1 || left[0] != theirs {
			t.Errorf("left: %q; want the other session's %q", left, theirs)
		}
		must(t, theirHold.Unlock())
		if left := faultLockKeys(t, s); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// An attempt is in flight when the session is closed: it was granted, and is taken back.
func faultCloseInFlight(t *testing.T, owner string, nested bool, hold func(*faulttest.Proxy, func([]string) bool) (<-chan struct{}, func()), silence bool) {
	const timeout, lease = 500 * time.Millisecond, 2 * time.Second
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{ReleaseTimeout: timeout, Lease: lease})
		ctx := within(t, 30*time.Second)
		if owner != "" {
			ctx = rlock.WithOwner(ctx, owner)
		}
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		var outer *rlock.Hold
		from := ctx
		if nested {
			section, h, err := m.Lock(ctx)
			must(t, err)
			outer = h
			if owner == "" { // a named owner's nested Lock needs no section's context
				from = section
			}
		}
		seen, release := hold(p, faultRuns(t, "acquire"))
		defer release()
		locked := faultGoLock(m, from)
		locktest.Get(t, seen, 5*time.Second, "the attempt")
		if silence {
			p.BlackHole(true)
		}
		begin := time.Now()
		closed := faultGo(ses.Close)
		got := locktest.Get(t, locked, 2*time.Second, "Lock")
		locktest.Is(t, "Lock", got.err, rlock.ErrClosed)
		if !silence {
			release()
		}
		err := locktest.Get(t, closed, 10*time.Second, "Close")
		if d := time.Since(begin); d > 2*timeout+faultFarewell+faultSlack {
			t.Errorf("Close took %v; the release timeout is %v", d, timeout)
		}
		if outer != nil {
			locktest.Is(t, "Unlock", outer.Unlock(), rlock.ErrClosed)
		}
		if !silence {
			if err != nil {
				t.Errorf("Close: %v", err)
			}
			if left := faultLockKeys(t, s); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			return
		}
		if err == nil {
			t.Error("Close reports success, but nothing can have been confirmed")
		}
		p.BlackHole(false)
		release()
		// What could not be released ends with its lease.
		redistest.Eventually(t, lease+faultSlack, "the lock is free", func() bool { return len(faultLockKeys(t, s)) == 0 })
	})
}

func TestFaultCloseDuringAcquireReplyHeld(t *testing.T) {
	faultCloseInFlight(t, "", false, (*faulttest.Proxy).HoldReply, false)
}

func TestFaultCloseDuringAcquireRequestHeld(t *testing.T) {
	faultCloseInFlight(t, "", false, (*faulttest.Proxy).HoldRequest, false)
}

func TestFaultCloseDuringAcquireOfANamedOwner(t *testing.T) {
	faultCloseInFlight(t, "order-17", false, (*faulttest.Proxy).HoldRequest, false)
}

func TestFaultCloseDuringNestedAcquire(t *testing.T) {
	faultCloseInFlight(t, "", true, (*faulttest.Proxy).HoldReply, false)
}

func TestFaultCloseDuringNestedAcquireOfANamedOwner(t *testing.T) {
	faultCloseInFlight(t, "order-17", true, (*faulttest.Proxy).HoldReply, false)
}

func TestFaultCloseDuringSilentAcquire(t *testing.T) {
	faultCloseInFlight(t, "", false, (*faulttest.Proxy).HoldReply, true)
}

func TestFaultCloseDuringSilentNestedAcquire(t *testing.T) {
	faultCloseInFlight(t, "", true, (*faulttest.Proxy).HoldReply, true)
}

func TestFaultCloseDuringSilentNestedAcquireOfANamedOwner(t *testing.T) {
	faultCloseInFlight(t, "order-17", true, (*faulttest.Proxy).HoldReply, true)
}

// An Unlock is in flight: it comes to its own end, and Close waits for it. That of an inner
// hold finds its section closed.
func TestFaultCloseWaitsForAnUnlockInFlight(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for _, nested := range []bool{false, true} {
			ses, p := faultDial(t, s, rlock.Config{})
			m := rlock.New(ses, redistest.Name(t))
			section, outer, err := m.Lock(within(t, 30*time.Second))
			must(t, err)
			first, cause := outer, rlock.ErrReleased
			if nested {
				_, inner, err := m.Lock(section)
				must(t, err)
				first, cause = inner, rlock.ErrClosed
			}
			seen, release := p.HoldReply(faultRuns(t, "release"))
			defer release()
			unlocked := faultGo(first.Unlock)
			locktest.Get(t, seen, 5*time.Second, "the release")
			closed := faultGo(ses.Close)
			locktest.Ends(t, section, 5*time.Second, cause)
			select {
			case err := <-closed:
				t.Fatalf("Close returned (%v) while an Unlock is under way", err)
			default:
			}
			release()
			err = locktest.Get(t, unlocked, 5*time.Second, "Unlock")
			must(t, locktest.Get(t, closed, 5*time.Second, "Close"))
			if !nested {
				must(t, err)
			} else {
				locktest.Is(t, "Unlock of the inner hold", err, rlock.ErrClosed)
				locktest.Is(t, "Unlock after Close", outer.Unlock(), rlock.ErrClosed)
			}
			if left := faultLockKeys(t, s); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		}
	})
}

// Nothing answers: Unlock and Close give up, in time, and say so. Run with -race, it
// also shows that the two do not step on each other.
func TestFaultCloseDuringSilentUnlock(t *testing.T) {
	const timeout, lease = 500 * time.Millisecond, 2 * time.Second
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for _, nested := range []bool{false, true} {
			ses, p := faultDial(t, s, rlock.Config{ReleaseTimeout: timeout, Lease: lease})
			name := redistest.Name(t)
			m := rlock.New(ses, name)
			section, h, err := m.Lock(within(t, 30*time.Second))
			must(t, err)
			if nested {
				_, h, err = m.Lock(section)
				must(t, err)
			}
			seen, release := p.HoldRequest(faultRuns(t, "release"))
			defer release()
			unlocked := faultGo(h.Unlock)
			locktest.Get(t, seen, 5*time.Second, "the release")
			p.BlackHole(true)
			begin := time.Now()
			closed := faultGo(ses.Close)
			if err := locktest.Get(t, unlocked, timeout+2*time.Second, "Unlock"); err == nil {
				t.Error("Unlock reports success")
			}
			err = locktest.Get(t, closed, 10*time.Second, "Close")
			if d := time.Since(begin); d > 2*timeout+faultFarewell+faultSlack {
				t.Errorf("Close took %v; the release timeout is %v", d, timeout)
			}
			if err == nil {
				t.Error("Close reports success")
			}
			p.BlackHole(false)
			release()
			redistest.Eventually(t, lease+faultSlack, "the lock is free", func() bool { return len(faultLockKeys(t, s)) == 0 })
		}
	})
}

// Redis is gone, for good.
func TestFaultCloseWithoutRedis(t *testing.T) {
	const timeout = 500 * time.Millisecond
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := faultDial(t, s, rlock.Config{ReleaseTimeout: timeout, Trace: trace})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(ctx)
		must(t, err)
		waiter := faultGoLock(m, ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		p.Refuse(true)
		other := faultGoLock(rlock.New(ses, name+"2"), ctx)
		begin := time.Now()
		if err := ses.Close(); err == nil {
			t.Error("Close reports success")
		}
		if d := time.Since(begin); d > 2*timeout+faultFarewell+faultSlack {
			t.Errorf("Close took %v; the release timeout is %v", d, timeout)
		}
		locktest.Is(t, "the waiter's Lock", locktest.Get(t, waiter, 5*time.Second, "the waiter's Lock").err, rlock.ErrClosed)
		locktest.Is(t, "the other's Lock", locktest.Get(t, other, 5*time.Second, "the other's Lock").err, rlock.ErrClosed)
		locktest.Ends(t, section, faultSlack, rlock.ErrClosed)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrClosed)
		faultAfterClose(t, ses, name)
	})
}

// A client of the caller's own is not closed, and works after the session.
func TestFaultCloseLeavesTheCallersClientAlone(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		ses, err := rlock.NewSession(context.Background(), client, rlock.Config{ReleaseTimeout: 500 * time.Millisecond})
		must(t, err)
		ctx := within(t, 20*time.Second)
		name := redistest.Name(t)
		_, _, err = rlock.New(ses, name).Lock(rlock.WithOwner(ctx, "order-17"))
		must(t, err)
		must(t, ses.Close())
		must(t, client.Do(ctx, client.B().Ping().Build()).Error())
		if left := faultLockKeys(t, s); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		redistest.Eventually(t, 5*time.Second, "no subscription is left", func() bool { return len(s.Channels(t)) == 0 })
	})
}
