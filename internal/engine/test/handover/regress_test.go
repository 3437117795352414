package handover_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// The tests of the regress*_test.go files are about what else may happen to a lock
// while it is handed over from one goroutine of a session to the next.

// handedOver has a lock handed over in memory, and returns both sections.
func handedOver(t *testing.T, ses *rlock.Session, name string) (a, b locktest.Locked) {
	t.Helper()
	section, h, err := rlock.New(ses, name).Lock(within(t, 60*time.Second))
	must(t, err)
	locktest.RunFor(ses, name, time.Hour)
	next := locktest.QueueUp(t, ses, name, within(t, 60*time.Second))
	must(t, h.Unlock())
	b = locktest.Get(t, next, 5*time.Second, "the next one in")
	must(t, b.Err)
	return locktest.Locked{Ctx: section, Hold: h}, b
}

// renewals is a Trace that tells of each answer to a renewal, after it was
// taken in.
func renewals() (*rlock.Trace, <-chan error) {
	c := make(chan error, 10000)
	return &rlock.Trace{Renewed: func(e locktrace.Renewed) { c <- e.Err }}, c
}

// A session that nobody else has listened to leaves the lock to others for a moment after it had it for
// long: its release enters nobody anew, for its front asks by itself. If the front has asked Redis before
// that release came there, it stands in the line, and the message of the release is the only wake-up.
func TestTheReleaseThatComesAfterTheYieldIsHeard(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		trace, refused := locktest.Refusals()
		ses, late := locktest.DialGated(t, s, rlock.Config{PollFloor: time.Minute, Lease: 2 * time.Minute, Trace: trace})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		first := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		locktest.Subscribed(t, s, 2)
		second := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		third := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		must(t, x.Unlock())
		a := locktest.Get(t, first, 5*time.Second, "the first")
		must(t, a.Err)
		redistest.Eventually(t, 5*time.Second, "what was granted is confirmed", func() bool { return a.Hold.Remaining() > time.Minute })
		locktest.RunFor(ses, name, -time.Hour)
		must(t, a.Hold.Unlock()) // this one counts who else listens: nobody
		a = locktest.Get(t, second, 5*time.Second, "the second, by its own attempt")
		must(t, a.Err)
		for len(refused) > 0 {
			<-refused
		}
		locktest.LeaveToOthers(ses, name, 300*time.Millisecond)
		seen, release := late.Hold(locktest.Calls(t, "release"))
		defer release()
		unlocked := locktest.Go(a.Hold.Unlock)
		locktest.Get(t, seen, 5*time.Second, "the release")
		locktest.Get(t, refused, 5*time.Second, "the attempt when the lock was left to others for long enough")
		release()
		must(t, locktest.Get(t, unlocked, 5*time.Second, "Unlock"))
		b := locktest.Get(t, third, 10*time.Second, "the third owner, of a lock that is free")
		must(t, b.Err)
		must(t, b.Hold.Unlock())
	})
}

// The waiter who would have passed over that message leaves before it comes. The release of
// another session is no echo to the next one.
func TestAnothersReleaseIsHeardAfterAYield(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		trace, refused := locktest.Refusals()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Minute, Trace: trace})
		other := dial(t, s, rlock.Config{Lease: 2 * time.Minute})
		name := redistest.Name(t)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		first := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		locktest.Subscribed(t, s, 2)
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		second := locktest.QueueUp(t, ses, name, ctx)
		must(t, x.Unlock())
		a := locktest.Get(t, first, 5*time.Second, "the first")
		must(t, a.Err)

		locktest.LeaveToOthers(ses, name, time.Hour)
		p.DropMessages(true) // as if it were late
		ran, release := p.HoldReply(locktest.Calls(t, "release"))
		defer release()
		unlocked := locktest.Go(a.Hold.Unlock) // until that is answered the queue knows of it
		locktest.Get(t, ran, 5*time.Second, "the release")
		cancel()
		locktest.Is(t, "Lock", locktest.Get(t, second, 5*time.Second, "the second").Err, context.Canceled)
		_, x, err = rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		third := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		for len(refused) > 0 {
			<-refused
		}
		locktest.LeaveToOthers(ses, name, 0)
		release()
		must(t, locktest.Get(t, unlocked, 5*time.Second, "Unlock"))
		p.DropMessages(false)
		for range 2 { // before it listens, and when it does
			locktest.Get(t, refused, 5*time.Second, "an attempt")
		}
		must(t, x.Unlock())
		c := locktest.Get(t, third, 10*time.Second, "the third owner, of a lock that is free")
		must(t, c.Err)
		must(t, c.Hold.Unlock())
	})
}

// One slow answer to a release does not keep the session away from a lock that is free.
func TestASlowReleaseMakesNoLongYield(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const slow = 2 * time.Second
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, b := handedOver(t, ses, name)
		p.DelayReply(slow, locktest.Calls(t, "release"))
		must(t, b.Hold.Unlock())
		_, b = handedOver(t, ses, name)
		next := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		locktest.RunFor(ses, name, -time.Hour)
		must(t, b.Hold.Unlock())
		c := locktest.Get(t, next, slow, "the next owner, of a lock that is free")
		must(t, c.Err)
		must(t, c.Hold.Unlock())
	})
}

// A waiter that the lock is handed to while it subscribes leaves no subscription.
func TestNoSubscriptionIsLeftByAHandOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		seen, release := p.HoldReply(faulttest.Is("SUBSCRIBE"))
		defer release()
		waiter := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		locktest.Get(t, seen, 5*time.Second, "the subscription")
		must(t, s.Do(t, "DEL", name).Error()) // a release would give the lock to the waiter
		_, h, err := m.TryLock(within(t, 30*time.Second))
		must(t, err)
		locktest.RunFor(ses, name, time.Hour)
		must(t, h.Unlock())
		release()
		w := locktest.Get(t, waiter, 5*time.Second, "the waiter")
		must(t, w.Err)
		must(t, w.Hold.Unlock())
		locktest.Is(t, "Unlock", x.Unlock(), rlock.ErrLost)
		redistest.Eventually(t, 10*time.Second, "empty books, and no subscription", func() bool {
			_, _, lines, _, active := locktest.Books(ses)
			return lines == 0 && active == 0 && len(s.Channels(t)) == 2
		})
	})
}

// Unlock cannot know that the lock was lost before: it hands the claim over, and the next
// section ends at the next renewal. Another session that has the lock in Redis is left alone.
func TestAnOwnerThatIsHandedALostLockIsTold(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		lost := make(chan string, 10)
		ses := dial(t, s, rlock.Config{Lease: lease, Trace: &rlock.Trace{Lost: func(e locktrace.Lost) { lost <- e.Name }}})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
		must(t, err)
		locktest.Unhurried(ses, name)
		next := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		must(t, s.Do(t, "DEL", name).Error())
		theirs, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		must(t, h.Unlock())
		b := locktest.Get(t, next, 5*time.Second, "the next one in")
		must(t, b.Err)
		locktest.Ends(t, b.Ctx, lease/2+min(s.Slack(), lease/3), rlock.ErrLost)
		if got := locktest.Get(t, lost, 5*time.Second, "Trace.Lost"); got != name {
			t.Errorf("Trace.Lost of %q", got)
		}
		locktest.Is(t, "Unlock", b.Hold.Unlock(), rlock.ErrLost)
		locktest.Quiet(t, ses)
		if n := locktest.Field(t, s, name, x.Owner()); n != "1" || theirs.Err() != nil {
			t.Errorf("the other session's owner has %q holds, %v", n, context.Cause(theirs))
		}
		must(t, x.Unlock())
	})
}
