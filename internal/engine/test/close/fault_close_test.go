package close_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
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
			locktest.Ends(t, c, s.Slack(), rlock.ErrClosed)
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
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: time.Second})
		section, h, err := rlock.New(ses, redistest.Name(t)).Lock(within(t, 20*time.Second))
		must(t, err)
		s.FlushAll(t)
		locktest.Ends(t, section, time.Second+s.Slack(), rlock.ErrLost)
		must(t, ses.Close())
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

func TestFaultConcurrentCloseIsOneClose(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, _, err := m.Lock(ctx)
		must(t, err)
		var closed []<-chan error
		for range 8 {
			closed = append(closed, locktest.Go(func() error {
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
			busy = append(busy, locktest.Go(func() error {
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
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		theirs, own := redistest.Name(t), redistest.Name(t)
		_, theirHold, err := rlock.New(holder, theirs).Lock(ctx)
		must(t, err)
		_, _, err = rlock.New(ses, own).Lock(ctx)
		must(t, err)
		var waiters []<-chan locktest.Locked
		for i := range 9 {
			lockCtx := ctx
			if i%3 == 2 {
				lockCtx = rlock.WithOwner(ctx, fmt.Sprint("order-", i))
			}
			waiters = append(waiters, locktest.GoLock(rlock.New(ses, theirs), lockCtx))
			locktest.Get(t, waiting, 5*time.Second, "a waiter waits")
			waiters = append(waiters, locktest.GoLock(rlock.New(ses, own), lockCtx, rlock.Wait(20*time.Second)))
			locktest.Get(t, waiting, 5*time.Second, "a waiter waits")
		}
		// One that waits for its own owner's turn.
		waiters = append(waiters, locktest.GoLock(rlock.New(ses, theirs), rlock.WithOwner(ctx, "order-2")))
		must(t, ses.Close())
		for _, w := range waiters {
			got := locktest.Get(t, w, 5*time.Second, "a waiter's Lock")
			locktest.Is(t, "a waiter's Lock", got.Err, rlock.ErrClosed)
			if errors.Is(got.Err, rlock.ErrNotAcquired) {
				t.Errorf("%v matches ErrNotAcquired too", got.Err)
			}
			if got.Hold != nil || got.Ctx.Err() != nil {
				t.Errorf("hold %v, the context's end: %v", got.Hold, got.Ctx.Err())
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

// Redis is gone, for good.
func TestFaultCloseWithoutRedis(t *testing.T) {
	const timeout = 500 * time.Millisecond
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout, Trace: trace})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(ctx)
		must(t, err)
		waiter := locktest.GoLock(m, ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		p.Refuse(true)
		other := locktest.GoLock(rlock.New(ses, name+"2"), ctx)
		begin := time.Now()
		if err := ses.Close(); err == nil {
			t.Error("Close reports success")
		}
		if d := time.Since(begin); d > 2*timeout+faultFarewell+s.Slack() {
			t.Errorf("Close took %v; the release timeout is %v", d, timeout)
		}
		locktest.Is(t, "the waiter's Lock", locktest.Get(t, waiter, 5*time.Second, "the waiter's Lock").Err, rlock.ErrClosed)
		locktest.Is(t, "the other's Lock", locktest.Get(t, other, 5*time.Second, "the other's Lock").Err, rlock.ErrClosed)
		locktest.Ends(t, section, s.Slack(), rlock.ErrClosed)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrClosed)
		faultAfterClose(t, ses, name)
	})
}

// A client of the caller's own is not closed, and works after the session.
func TestFaultCloseLeavesTheCallersClientAlone(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
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
