package handover_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A claim is handed over and then lost, without word from Redis. What its release takes back
// later must not be the session's next claim.
func TestAReleaseOfALostClaimSparesTheNextOne(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 4500 * time.Millisecond})
		name := redistest.Name(t)
		a, b := handedOver(t, ses, name)
		p.BlackHole(true)
		locktest.Ends(t, b.Ctx, 20*time.Second, rlock.ErrLost)
		redistest.Eventually(t, 5*time.Second, "the lease is over", func() bool { return locktest.Free(t, s, name) })
		p.BlackHole(false)

		again := locktest.Get(t, locktest.GoLock(rlock.New(ses, name), context.WithoutCancel(a.Ctx)), 10*time.Second, "an outermost Lock")
		must(t, again.Err)
		locktest.Is(t, "Unlock of the lost hold", b.Hold.Unlock(), rlock.ErrLost)
		locktest.Quiet(t, ses)
		if n := locktest.Field(t, s, name, again.Hold.Owner()); n != "1" {
			t.Errorf("the next claim has %q holds in Redis", n)
		}
		must(t, again.Ctx.Err())
		must(t, again.Hold.Unlock())
	})
}

// The lock is lost, without word from Redis, on its way to a waiter that has left. What may
// stand in Redis is released, though nobody is there to unlock it.
func TestALockIsReleasedThatWasLostOnTheWayToAWaiterThatHasLeft(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		waiting, goOn := make(chan struct{}), make(chan struct{})
		lost := make(chan struct{}, 10)
		trace := &rlock.Trace{
			Waiting: func(context.Context, locktrace.Waiting) { close(waiting); <-goOn },
			Lost:    func(locktrace.Lost) { lost <- struct{}{} },
		}
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 2 * time.Second, Trace: trace})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		_, h, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		locktest.Unhurried(ses, name)
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		defer cancel()
		next := locktest.GoLock(m, ctx)
		<-waiting
		p.BlackHole(true) // no renewal is answered
		must(t, h.Unlock())
		must(t, s.Do(t, "PEXPIRE", name, "60000").Error()) // it would outlive the trust anyway, by little
		locktest.Get(t, lost, 5*time.Second, "nobody trusts it any more")
		cancel()
		close(goOn)
		locktest.Is(t, "Lock", locktest.Get(t, next, 5*time.Second, "Lock").Err, context.Canceled)
		p.BlackHole(false)
		locktest.Quiet(t, ses)
		if !locktest.Free(t, s, name) {
			t.Errorf("nobody holds the lock, and it stands: %v", s.Do(t, "HGETALL", name))
		}
	})
}

// A server that is out of memory renews a lock, handed over or not.
func TestHandOverWithoutMemory(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	redistest.SkipShort(t)
	for what, passes := range map[string]bool{"handed over": true, "not handed over": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			trace, renewed := renewals()
			ses := dial(t, s, rlock.Config{Lease: lease, Trace: trace})
			name := redistest.Name(t)
			section, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
			must(t, err)
			locktest.RunFor(ses, name, time.Hour)
			var next <-chan locktest.Locked
			if passes {
				next = locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
			}
			must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
			defer s.Do(t, "CONFIG", "SET", "maxmemory", "0")
			if passes {
				must(t, h.Unlock())
				b := locktest.Get(t, next, 5*time.Second, "the next one in")
				must(t, b.Err)
				section, h = b.Ctx, b.Hold
			}
			for range 5 { // three within a lease
				must(t, locktest.Get(t, renewed, 5*time.Second, "a renewal"))
			}
			must(t, section.Err())
			must(t, h.Unlock())
		})
	}
}
