package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An owner that was handed the lock and lost it releases what may stand there by the names
// of those whom he had it from, too. Once one of them is in anew, it must not.
func TestAReleaseSparesTheFormerOwnersNextHold(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{Lease: 1500 * time.Millisecond})
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
		must(t, err)
		ses.RunFor(name, time.Hour)
		next := lineUp(t, ses, name, within(t, 30*time.Second))
		p.BlackHole(true)
		must(t, h.Unlock())
		b := locktest.Get(t, next, 5*time.Second, "the next one in")
		must(t, b.err)
		locktest.Ends(t, b.ctx, 5*time.Second, rlock.ErrLost)
		redistest.Eventually(t, 5*time.Second, "the lease is over", func() bool { return faultFree(t, s, name) })
		p.BlackHole(false)

		again := locktest.Get(t, faultGoLock(rlock.New(ses, name), context.WithoutCancel(section)), 10*time.Second, "the former owner is in anew")
		must(t, again.err)
		locktest.Is(t, "Unlock of the lost hold", b.hold.Unlock(), rlock.ErrLost)
		quiet(t, ses)
		if n := faultCount(t, s, name, again.hold.PeekID()); n != "1" {
			t.Errorf("who is in anew has %q holds in Redis", n)
		}
		must(t, again.ctx.Err())
		must(t, again.hold.Unlock())
	})
}

// A transfer is sent late, after the release that named both owners. Until it has come back
// the first of them does not begin anew: it would take his new hold from him.
func TestAFormerOwnerWaitsForALateTransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, late := lateDial(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		seen, release := late.hold(faultRuns(t, "transfer"))
		defer release()
		a, b := handedOver(t, ses, name)
		locktest.Get(t, seen, 5*time.Second, "the transfer")
		must(t, b.hold.Unlock())
		former := faultGoLock(m, context.WithoutCancel(a.ctx))
		redistest.Eventually(t, 5*time.Second, "he waits, or is in", func() bool { return a.hold.Awaited() || len(former) > 0 })
		_, _, err := m.TryLock(context.WithoutCancel(a.ctx))
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		if !faultFree(t, s, name) || len(former) > 0 {
			t.Error("the former owner is in before the transfer has come back")
		}
		release()
		again := locktest.Get(t, former, 5*time.Second, "he is let in")
		must(t, again.err)
		if n := faultCount(t, s, name, a.hold.PeekID()); n != "1" {
			t.Errorf("the owner inside has %q holds in Redis", n)
		}
		must(t, again.hold.Unlock())
		if !faultFree(t, s, name) {
			t.Errorf("everybody has unlocked, and the lock stands: %v", s.Do(t, "HGETALL", name))
		}
	})
}

// Whoever is told of an owner may use it, anywhere. If the lock was just handed over from it
// he is told only when it stands in Redis no more, or he would be in beside the next one.
func TestAFormerOwnerIsToldWhenRedisKnows(t *testing.T) {
	for what, ask := range map[string]func(a faultLocked) string{
		"Owner": func(a faultLocked) string { return a.hold.Owner() },
		"OwnerFrom": func(a faultLocked) string {
			id, _ := rlock.OwnerFrom(a.ctx)
			return id
		},
	} {
		t.Run(what, func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				ses, p := faultDial(t, s, rlock.Config{})
				other := dial(t, s, rlock.Config{})
				name := redistest.Name(t)
				seen, release := p.HoldRequest(faultRuns(t, "transfer"))
				defer release()
				a, b := handedOver(t, ses, name)
				locktest.Get(t, seen, 5*time.Second, "the transfer")
				told := make(chan string, 1)
				go func() { told <- ask(a) }()
				redistest.Eventually(t, 5*time.Second, "it waits, or is there", func() bool { return a.hold.Awaited() || len(told) > 0 })
				if len(told) > 0 {
					t.Error("the owner is told while it stands in Redis for another")
				}
				release()
				ctx := rlock.WithOwner(within(t, 10*time.Second), locktest.Get(t, told, 5*time.Second, what))
				_, _, err := rlock.New(other, name).TryLock(ctx)
				locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
				must(t, b.ctx.Err())
				must(t, b.hold.Unlock())
			})
		})
	}
}

// If Redis is not heard of, that is when the lease is over.
func TestAFormerOwnerIsToldWhenTheLeaseIsOver(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		// The release timeout is no reason to tell.
		ses, p := faultDial(t, s, rlock.Config{Lease: 1500 * time.Millisecond, ReleaseTimeout: 50 * time.Millisecond})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, release := p.HoldRequest(faultRuns(t, "transfer"))
		defer release()
		a, b := handedOver(t, ses, name)
		told := make(chan string, 1)
		go func() { told <- a.hold.Owner() }()
		owner := locktest.Get(t, told, 20*time.Second, "Owner")
		if n := faultCount(t, s, name, owner); n != "" {
			t.Errorf("the owner is told while it has %q holds in Redis", n)
		}
		locktest.Ends(t, b.ctx, time.Second, rlock.ErrLost)
		_, x, err := rlock.New(other, name).TryLock(rlock.WithOwner(within(t, 10*time.Second), owner))
		must(t, err)
		locktest.Is(t, "Unlock", b.hold.Unlock(), rlock.ErrLost)
		must(t, x.Unlock())
	})
}

// The lock is lost, without word from Redis, on its way to a waiter who has left. What may
// stand in Redis is released, though nobody is there to unlock it.
func TestALockIsReleasedThatWasLostOnTheWayToOneWhoHasLeft(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		waiting, goOn := make(chan struct{}), make(chan struct{})
		lost := make(chan struct{}, 10)
		trace := &rlock.Trace{
			Waiting: func(string, string) { close(waiting); <-goOn },
			Lost:    func(string, string, string) { lost <- struct{}{} },
		}
		ses, p := faultDial(t, s, rlock.Config{Lease: 2 * time.Second, Trace: trace})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		ran, release := p.HoldReply(faultRuns(t, "transfer"))
		defer release()
		_, h, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		ses.RunFor(name, time.Hour)
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		defer cancel()
		next := faultGoLock(m, ctx)
		<-waiting
		must(t, h.Unlock())
		locktest.Get(t, ran, 5*time.Second, "the transfer has run")
		must(t, s.Do(t, "PEXPIRE", name, "60000").Error()) // it would outlive the trust anyway, by little
		locktest.Get(t, lost, 5*time.Second, "nobody trusts it any more")
		cancel()
		close(goOn)
		locktest.Is(t, "Lock", locktest.Get(t, next, 5*time.Second, "Lock").err, context.Canceled)
		release()
		quiet(t, ses)
		if !faultFree(t, s, name) {
			t.Errorf("nobody holds the lock, and it stands: %v", s.Do(t, "HGETALL", name))
		}
	})
}

// A server that is out of memory takes note of a hand-over, and renews the lock.
func TestHandOverWithoutMemory(t *testing.T) {
	const lease = time.Second
	s := redistest.Real(t)
	for what, passes := range map[string]bool{"handed over": true, "not handed over": false} {
		t.Run(what, func(t *testing.T) {
			trace, renewed := renewals()
			ses := dial(t, s, rlock.Config{Lease: lease, Trace: trace})
			name := redistest.Name(t)
			section, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
			must(t, err)
			ses.RunFor(name, time.Hour)
			var next <-chan faultLocked
			if passes {
				next = lineUp(t, ses, name, within(t, 30*time.Second))
			}
			must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
			defer s.Do(t, "CONFIG", "SET", "maxmemory", "0")
			if passes {
				must(t, h.Unlock())
				b := locktest.Get(t, next, 5*time.Second, "the next one in")
				must(t, b.err)
				section, h = b.ctx, b.hold
			}
			for range 5 { // three within a lease
				must(t, locktest.Get(t, renewed, 5*time.Second, "a renewal"))
			}
			must(t, section.Err())
			must(t, h.Unlock())
		})
	}
}

// Redis answers transfers with an error, as it does while it moves the slot. The lock is
// renewed meanwhile by the name that Redis knows.
func TestALockIsRenewedWhileItsTransferIsRefused(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const lease = time.Second
		trace, renewed := renewals()
		ses, client := lateDial(t, s, rlock.Config{Lease: lease, Trace: trace})
		name := redistest.Name(t)
		client.refused(faultRuns(t, "transfer"))
		a, b := handedOver(t, ses, name)
		faultStays(t, b.ctx, 2*lease)
		if n := faultCount(t, s, name, a.hold.PeekID()); n != "1" {
			t.Errorf("Redis knows %q holds of the former owner", n)
		}
		client.refused(nil)
		redistest.Eventually(t, 5*time.Second, "the transfer", func() bool { return <-renewed == nil })
		if n := faultCount(t, s, name, b.hold.PeekID()); n != "1" {
			t.Errorf("Redis knows %q holds of the owner", n)
		}
		must(t, b.hold.Unlock())
		if !faultFree(t, s, name) {
			t.Error("the lock stands after Unlock")
		}
	})
}
