package rlock_test

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

// The tests of the regress_handover*_test.go files are about what else may happen to a lock
// while it is handed over from one goroutine of a session to the next.

// queueUp has one more goroutine wait in the session's queue.
func queueUp(t *testing.T, ses *rlock.Session, name string, ctx context.Context) <-chan faultLocked {
	t.Helper()
	before := ses.WaitersOf(name)
	c := faultGoLock(rlock.New(ses, name), ctx)
	redistest.Eventually(t, 5*time.Second, "one more in the queue", func() bool { return ses.WaitersOf(name) > before })
	return c
}

// handedOver has a lock handed over in memory, and returns both sections.
func handedOver(t *testing.T, ses *rlock.Session, name string) (a, b faultLocked) {
	t.Helper()
	section, h, err := rlock.New(ses, name).Lock(within(t, 60*time.Second))
	must(t, err)
	ses.RunFor(name, time.Hour)
	next := queueUp(t, ses, name, within(t, 60*time.Second))
	must(t, h.Unlock())
	b = locktest.Get(t, next, 5*time.Second, "the next one in")
	must(t, b.err)
	return faultLocked{ctx: section, hold: h}, b
}

// renewals is a Trace that tells of each answer to a renewal, after it was
// taken in.
func renewals() (*rlock.Trace, <-chan error) {
	c := make(chan error, 10000)
	return &rlock.Trace{Renewed: func(e locktrace.Renewed) { c <- e.Err }}, c
}

// refusals is a Trace that tells of each attempt that found the lock held.
func refusals() (*rlock.Trace, <-chan struct{}) {
	c := make(chan struct{}, 10000)
	return &rlock.Trace{Attempt: func(e locktrace.Attempt) {
		if !e.Granted && e.Err == nil {
			c <- struct{}{}
		}
	}}, c
}

// quiet waits until the session has nothing under way, not in the background either.
func quiet(t *testing.T, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "nothing is under way", func() bool {
		_, _, _, _, active := ses.Books()
		return active == 0
	})
}

// subscribed waits until somebody listens for releases, beside the sessions' own channels.
func subscribed(t *testing.T, s *redistest.Server, sessions int) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, "a subscription", func() bool { return len(s.Channels(t)) > sessions })
}

// A session that nobody else has listened to leaves the lock to others for a moment after it had it for
// long: its release enters nobody anew, for its front asks by itself. If the front has asked Redis before
// that release came there, it stands in the line, and the message of the release is the only wake-up.
func TestTheReleaseThatComesAfterTheYieldIsHeard(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, refused := refusals()
		ses, late := locktest.DialGated(t, s, rlock.Config{PollFloor: time.Minute, Lease: 2 * time.Minute, Trace: trace})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		first := queueUp(t, ses, name, within(t, 30*time.Second))
		subscribed(t, s, 2)
		second := queueUp(t, ses, name, within(t, 30*time.Second))
		third := queueUp(t, ses, name, within(t, 30*time.Second))
		must(t, x.Unlock())
		a := locktest.Get(t, first, 5*time.Second, "the first")
		must(t, a.err)
		redistest.Eventually(t, 5*time.Second, "what was granted is confirmed", func() bool { return a.hold.Remaining() > time.Minute })
		ses.RunFor(name, -time.Hour)
		must(t, a.hold.Unlock()) // this one counts who else listens: nobody
		a = locktest.Get(t, second, 5*time.Second, "the second, by its own attempt")
		must(t, a.err)
		for len(refused) > 0 {
			<-refused
		}
		ses.LeaveToOthers(name, 300*time.Millisecond)
		seen, release := late.Hold(faultRuns(t, "release"))
		defer release()
		unlocked := faultGo(a.hold.Unlock)
		locktest.Get(t, seen, 5*time.Second, "the release")
		locktest.Get(t, refused, 5*time.Second, "the attempt when the lock was left to others for long enough")
		release()
		must(t, locktest.Get(t, unlocked, 5*time.Second, "Unlock"))
		b := locktest.Get(t, third, 10*time.Second, "the third owner, of a lock that is free")
		must(t, b.err)
		must(t, b.hold.Unlock())
	})
}

// The waiter who would have passed over that message leaves before it comes. The release of
// another session is no echo to the next one.
func TestAnothersReleaseIsHeardAfterAYield(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, refused := refusals()
		ses, p := faultDial(t, s, rlock.Config{PollFloor: time.Minute, Trace: trace})
		other := dial(t, s, rlock.Config{Lease: 2 * time.Minute})
		name := redistest.Name(t)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		first := queueUp(t, ses, name, within(t, 30*time.Second))
		subscribed(t, s, 2)
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		second := queueUp(t, ses, name, ctx)
		must(t, x.Unlock())
		a := locktest.Get(t, first, 5*time.Second, "the first")
		must(t, a.err)

		ses.LeaveToOthers(name, time.Hour)
		p.DropMessages(true) // as if it were late
		ran, release := p.HoldReply(faultRuns(t, "release"))
		defer release()
		unlocked := faultGo(a.hold.Unlock) // until that is answered the queue knows of it
		locktest.Get(t, ran, 5*time.Second, "the release")
		cancel()
		locktest.Is(t, "Lock", locktest.Get(t, second, 5*time.Second, "the second").err, context.Canceled)
		_, x, err = rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		third := queueUp(t, ses, name, within(t, 30*time.Second))
		for len(refused) > 0 {
			<-refused
		}
		ses.LeaveToOthers(name, 0)
		release()
		must(t, locktest.Get(t, unlocked, 5*time.Second, "Unlock"))
		p.DropMessages(false)
		for range 2 { // before it listens, and when it does
			locktest.Get(t, refused, 5*time.Second, "an attempt")
		}
		must(t, x.Unlock())
		c := locktest.Get(t, third, 10*time.Second, "the third owner, of a lock that is free")
		must(t, c.err)
		must(t, c.hold.Unlock())
	})
}

// One slow answer to a release does not keep the session away from a lock that is free.
func TestASlowReleaseMakesNoLongYield(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const slow = 2 * time.Second
		ses, p := faultDial(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, b := handedOver(t, ses, name)
		p.DelayReply(slow, faultRuns(t, "release"))
		must(t, b.hold.Unlock())
		_, b = handedOver(t, ses, name)
		next := queueUp(t, ses, name, within(t, 30*time.Second))
		ses.RunFor(name, -time.Hour)
		must(t, b.hold.Unlock())
		c := locktest.Get(t, next, slow, "the next owner, of a lock that is free")
		must(t, c.err)
		must(t, c.hold.Unlock())
	})
}

// A waiter that the lock is handed to while it subscribes leaves no subscription.
func TestNoSubscriptionIsLeftByAHandOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		seen, release := p.HoldReply(faulttest.Is("SUBSCRIBE"))
		defer release()
		waiter := queueUp(t, ses, name, within(t, 30*time.Second))
		locktest.Get(t, seen, 5*time.Second, "the subscription")
		must(t, s.Do(t, "DEL", name).Error()) // a release would give the lock to the waiter
		_, h, err := m.TryLock(within(t, 30*time.Second))
		must(t, err)
		ses.RunFor(name, time.Hour)
		must(t, h.Unlock())
		release()
		w := locktest.Get(t, waiter, 5*time.Second, "the waiter")
		must(t, w.err)
		must(t, w.hold.Unlock())
		locktest.Is(t, "Unlock", x.Unlock(), rlock.ErrLost)
		redistest.Eventually(t, 10*time.Second, "empty books, and no subscription", func() bool {
			_, _, lines, _, active := ses.Books()
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
		ses.Unhurried(name)
		next := queueUp(t, ses, name, within(t, 30*time.Second))
		must(t, s.Do(t, "DEL", name).Error())
		theirs, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		must(t, h.Unlock())
		b := locktest.Get(t, next, 5*time.Second, "the next one in")
		must(t, b.err)
		locktest.Ends(t, b.ctx, lease/2+min(s.Slack(), lease/3), rlock.ErrLost)
		if got := locktest.Get(t, lost, 5*time.Second, "Trace.Lost"); got != name {
			t.Errorf("Trace.Lost of %q", got)
		}
		locktest.Is(t, "Unlock", b.hold.Unlock(), rlock.ErrLost)
		quiet(t, ses)
		if n := faultCount(t, s, name, x.Owner()); n != "1" || theirs.Err() != nil {
			t.Errorf("the other session's owner has %q holds, %v", n, context.Cause(theirs))
		}
		must(t, x.Unlock())
	})
}
