package close_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An attempt is in flight when the session is closed: it was granted, and is taken back.
func faultCloseInFlight(t *testing.T, owner string, nested bool, hold func(*faulttest.Proxy, func([]string) bool) (<-chan struct{}, func()), silence bool) {
	const timeout, lease = 500 * time.Millisecond, 2 * time.Second
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout, Lease: lease})
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
		seen, release := hold(p, locktest.Calls(t, "acquire"))
		defer release()
		locked := locktest.GoLock(m, from)
		locktest.Get(t, seen, 5*time.Second, "the attempt")
		if silence {
			p.BlackHole(true)
		}
		begin := time.Now()
		closed := locktest.Go(ses.Close)
		got := locktest.Get(t, locked, 2*time.Second+s.Slack(), "Lock")
		locktest.Is(t, "Lock", got.Err, rlock.ErrClosed)
		if !silence {
			release()
		}
		err := locktest.Get(t, closed, 10*time.Second, "Close")
		if d := time.Since(begin); d > 2*timeout+faultFarewell+s.Slack() {
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
		redistest.Eventually(t, lease+s.Slack(), "the lock is free", func() bool { return len(faultLockKeys(t, s)) == 0 })
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

// An Extend is in flight, with a context of its own: it ends with the section.
func TestFaultCloseDuringASilentExtend(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		m := rlock.New(ses, redistest.Name(t))
		_, hold, err := m.Lock(within(t, 30*time.Second), rlock.Lease(time.Minute))
		must(t, err)
		seen, release := p.HoldReply(locktest.Calls(t, "extend"))
		defer release()
		extended := locktest.Go(func() error { return hold.Extend(context.Background(), time.Minute) })
		locktest.Get(t, seen, 5*time.Second, "the extension")
		closed := locktest.Go(ses.Close)
		locktest.Is(t, "Extend", locktest.Get(t, extended, 20*time.Second, "Extend"), rlock.ErrClosed)
		release()
		_ = locktest.Get(t, closed, 20*time.Second, "Close") // its own release may have had no answer
	})
}

// An Unlock is in flight: it comes to its own end, and Close waits for it. That of an inner
// hold finds its section closed.
func TestFaultCloseWaitsForAnUnlockInFlight(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, nested := range []bool{false, true} {
			ses, p := locktest.DialProxy(t, s, rlock.Config{})
			m := rlock.New(ses, redistest.Name(t))
			section, outer, err := m.Lock(within(t, 30*time.Second))
			must(t, err)
			first, cause := outer, rlock.ErrReleased
			if nested {
				_, inner, err := m.Lock(section)
				must(t, err)
				first, cause = inner, rlock.ErrClosed
			}
			seen, release := p.HoldReply(locktest.Calls(t, "release"))
			defer release()
			unlocked := locktest.Go(first.Unlock)
			locktest.Get(t, seen, 5*time.Second, "the release")
			closed := locktest.Go(ses.Close)
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
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, nested := range []bool{false, true} {
			ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout, Lease: lease})
			name := redistest.Name(t)
			m := rlock.New(ses, name)
			section, h, err := m.Lock(within(t, 30*time.Second))
			must(t, err)
			if nested {
				_, h, err = m.Lock(section)
				must(t, err)
			}
			seen, release := p.HoldRequest(locktest.Calls(t, "release"))
			defer release()
			unlocked := locktest.Go(h.Unlock)
			locktest.Get(t, seen, 5*time.Second, "the release")
			p.BlackHole(true)
			begin := time.Now()
			closed := locktest.Go(ses.Close)
			if err := locktest.Get(t, unlocked, timeout+2*time.Second, "Unlock"); err == nil {
				t.Error("Unlock reports success")
			}
			err = locktest.Get(t, closed, 10*time.Second, "Close")
			if d := time.Since(begin); d > 2*timeout+faultFarewell+s.Slack() {
				t.Errorf("Close took %v; the release timeout is %v", d, timeout)
			}
			if err == nil {
				t.Error("Close reports success")
			}
			p.BlackHole(false)
			release()
			redistest.Eventually(t, lease+s.Slack(), "the lock is free", func() bool { return len(faultLockKeys(t, s)) == 0 })
		}
	})
}
