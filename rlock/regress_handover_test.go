package rlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The tests of the regress_handover*_test.go files are about what else may happen to a lock
// while it passes from one owner of a session to the next in memory.

// lateClient can be told to send one command late, as a goroutine that is not scheduled, a
// redirection or a NOSCRIPT would; or to have commands refused.
type lateClient struct {
	rueidis.Client
	mu     sync.Mutex
	late   func(cmd []string) bool
	seen   chan struct{}
	gate   chan struct{}
	refuse func(cmd []string) bool
}

// hold keeps the next command that matches from being sent until release is called; seen is
// closed when it has come. It is sent then even if its caller has gone away.
func (c *lateClient) hold(match func(cmd []string) bool) (seen <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late, c.seen, c.gate = match, make(chan struct{}), make(chan struct{})
	gate := c.gate
	return c.seen, sync.OnceFunc(func() { close(gate) })
}

// refused has Redis answer an error to the commands that match; nil: to none.
func (c *lateClient) refused(match func(cmd []string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = match
}

func (c *lateClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.mu.Lock()
	var gate chan struct{}
	if c.late != nil && c.late(cmd.Commands()) {
		gate, c.late = c.gate, nil
		close(c.seen)
	}
	refuse := c.refuse != nil && c.refuse(cmd.Commands())
	c.mu.Unlock()
	if gate != nil {
		<-gate
		ctx = context.WithoutCancel(ctx)
	}
	if refuse {
		cmd = c.B().Eval().Script("return redis.error_reply('BUSY not now')").Numkeys(0).Build()
	}
	return c.Client.Do(ctx, cmd)
}

func lateDial(t *testing.T, s *redistest.Server, cfg rlock.Config) (*rlock.Session, *lateClient) {
	t.Helper()
	c := &lateClient{Client: s.Client(t)}
	ses, err := rlock.NewSession(context.Background(), c, cfg)
	must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	return ses, c
}

// lineUp has one more goroutine wait in the session's line.
func lineUp(t *testing.T, ses *rlock.Session, name string, ctx context.Context) <-chan faultLocked {
	t.Helper()
	before := ses.WaitersOf(name)
	c := faultGoLock(rlock.New(ses, name), ctx)
	redistest.Eventually(t, 5*time.Second, "one more in the line", func() bool { return ses.WaitersOf(name) > before })
	return c
}

// handedOver has a lock pass from one owner to another in memory, and returns both.
func handedOver(t *testing.T, ses *rlock.Session, name string) (a, b faultLocked) {
	t.Helper()
	section, h, err := rlock.New(ses, name).Lock(within(t, 60*time.Second))
	must(t, err)
	ses.RunFor(name, time.Hour)
	next := lineUp(t, ses, name, within(t, 60*time.Second))
	must(t, h.Unlock())
	b = locktest.Get(t, next, 5*time.Second, "the next one in")
	must(t, b.err)
	return faultLocked{ctx: section, hold: h}, b
}

// renewals is a Trace that tells of each answer to a renewal or a transfer, after it was
// taken in.
func renewals() (*rlock.Trace, <-chan error) {
	c := make(chan error, 10000)
	return &rlock.Trace{Renewed: func(_ int, err error) { c <- err }}, c
}

// refusals is a Trace that tells of each attempt that found the lock held.
func refusals() (*rlock.Trace, <-chan struct{}) {
	c := make(chan struct{}, 10000)
	return &rlock.Trace{Attempt: func(_, _ string, granted bool, err error) {
		if !granted && err == nil {
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

// A session leaves the lock to others for a moment after it had it for long, and the message
// of its own release is no news then. If the one in front has asked Redis before that
// release came there, the message is the only wake-up.
func TestTheReleaseThatComesAfterTheYieldIsHeard(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, refused := refusals()
		ses, late := lateDial(t, s, rlock.Config{PollFloor: time.Minute, Lease: 2 * time.Minute, Trace: trace})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		first := lineUp(t, ses, name, within(t, 30*time.Second))
		subscribed(t, s, 2)
		second := lineUp(t, ses, name, within(t, 30*time.Second))
		must(t, x.Unlock())
		a := locktest.Get(t, first, 5*time.Second, "the first")
		must(t, a.err)
		for len(refused) > 0 {
			<-refused
		}
		ses.LeaveToOthers(name, 300*time.Millisecond)
		seen, release := late.hold(faultRuns(t, "release"))
		defer release()
		unlocked := faultGo(a.hold.Unlock)
		locktest.Get(t, seen, 5*time.Second, "the release")
		locktest.Get(t, refused, 5*time.Second, "the attempt when the lock was left to others for long enough")
		release()
		must(t, locktest.Get(t, unlocked, 5*time.Second, "Unlock"))
		b := locktest.Get(t, second, 10*time.Second, "the second owner, of a lock that is free")
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
		first := lineUp(t, ses, name, within(t, 30*time.Second))
		subscribed(t, s, 2)
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		second := lineUp(t, ses, name, ctx)
		must(t, x.Unlock())
		a := locktest.Get(t, first, 5*time.Second, "the first")
		must(t, a.err)

		ses.LeaveToOthers(name, time.Hour)
		p.DropMessages(true) // as if it were late
		ran, release := p.HoldReply(faultRuns(t, "release"))
		defer release()
		unlocked := faultGo(a.hold.Unlock) // until that is answered the line knows of it
		locktest.Get(t, ran, 5*time.Second, "the release")
		cancel()
		locktest.Is(t, "Lock", locktest.Get(t, second, 5*time.Second, "the second").err, context.Canceled)
		_, x, err = rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		third := lineUp(t, ses, name, within(t, 30*time.Second))
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

// One slow answer does not keep the session away from a lock that is free.
func TestASlowTransferMakesNoLongYield(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const slow = 2 * time.Second
		trace, renewed := renewals()
		ses, p := faultDial(t, s, rlock.Config{Trace: trace})
		name := redistest.Name(t)
		p.DelayReply(slow, faultRuns(t, "transfer"))
		_, b := handedOver(t, ses, name)
		must(t, locktest.Get(t, renewed, 3*slow, "the answer to the transfer"))
		next := lineUp(t, ses, name, within(t, 30*time.Second))
		ses.RunFor(name, -time.Hour)
		must(t, b.hold.Unlock())
		c := locktest.Get(t, next, slow, "the next owner, of a lock that is free")
		must(t, c.err)
		must(t, c.hold.Unlock())
	})
}

// The one in front finds at the poll floor that the lock was deleted under its holder, also
// if both have come to where they are by a hand-over.
func TestTheFrontLooksAfterAHandOver(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		trace, renewed := renewals()
		ses := dial(t, s, rlock.Config{PollFloor: 300 * time.Millisecond, Trace: trace})
		name := redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
		must(t, err)
		ses.RunFor(name, time.Hour)
		second := lineUp(t, ses, name, within(t, 30*time.Second))
		third := lineUp(t, ses, name, within(t, 30*time.Second))
		must(t, h.Unlock())
		b := locktest.Get(t, second, 5*time.Second, "the second")
		must(t, b.err)
		must(t, locktest.Get(t, renewed, 5*time.Second, "the answer to the transfer"))
		must(t, s.Do(t, "DEL", name).Error())
		c := locktest.Get(t, third, 5*time.Second, "the third") // a renewal comes after 10 s
		must(t, c.err)
		locktest.Is(t, "Unlock", b.hold.Unlock(), rlock.ErrLost)
		must(t, c.hold.Unlock())
	})
}

// A waiter that the lock is handed to while it subscribes leaves no subscription.
func TestNoSubscriptionIsLeftByAHandOver(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		_, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		seen, release := p.HoldReply(faulttest.Is("SUBSCRIBE"))
		defer release()
		waiter := lineUp(t, ses, name, within(t, 30*time.Second))
		locktest.Get(t, seen, 5*time.Second, "the subscription")
		must(t, x.Unlock())
		_, h, err := m.TryLock(within(t, 30*time.Second))
		must(t, err)
		ses.RunFor(name, time.Hour)
		must(t, h.Unlock())
		release()
		w := locktest.Get(t, waiter, 5*time.Second, "the waiter")
		must(t, w.err)
		must(t, w.hold.Unlock())
		redistest.Eventually(t, 10*time.Second, "empty books, and no subscription", func() bool {
			_, _, lines, _, active := ses.Books()
			return lines == 0 && active == 0 && len(s.Channels(t)) == 2
		})
	})
}

// A Lock by the new owner waits until Redis knows of the hand-over. If what Redis says then
// is that the lock is gone, the Lock goes on, as the Unlock that waits behind it does.
func TestANestedLockIsToldThatTheTransferFoundNothing(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{ReleaseTimeout: 20 * time.Second})
		name := redistest.Name(t)
		seen, release := p.HoldRequest(faultRuns(t, "transfer"))
		defer release()
		_, b := handedOver(t, ses, name)
		locktest.Get(t, seen, 5*time.Second, "the transfer")
		nested := faultGoLock(rlock.New(ses, name), context.WithoutCancel(b.ctx))
		redistest.Eventually(t, 5*time.Second, "it waits for its turn", b.hold.Awaited)
		unlocked := faultGo(b.hold.Unlock)
		redistest.Eventually(t, 5*time.Second, "Unlock waits too", func() bool {
			_, _, _, _, active := ses.Books()
			return active == 3 // with the transfer
		})
		must(t, s.Do(t, "DEL", name).Error())
		release()
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, 5*time.Second, "Unlock"), rlock.ErrLost)
		locktest.Ends(t, b.ctx, time.Second, rlock.ErrLost)
		got := locktest.Get(t, nested, 5*time.Second, "the nested Lock returns") // outermost now
		must(t, got.err)
		must(t, got.hold.Unlock())
	})
}

// Close ends such a Lock too.
func TestCloseEndsANestedLockThatWaitsForATransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{ReleaseTimeout: time.Second})
		name := redistest.Name(t)
		seen, release := p.HoldRequest(faultRuns(t, "transfer"))
		defer release()
		_, b := handedOver(t, ses, name)
		locktest.Get(t, seen, 5*time.Second, "the transfer")
		nested := faultGoLock(rlock.New(ses, name), context.WithoutCancel(b.ctx))
		redistest.Eventually(t, 5*time.Second, "it waits for its turn", b.hold.Awaited)
		closed := faultGo(ses.Close)
		got := locktest.Get(t, nested, 10*time.Second, "the nested Lock returns")
		locktest.Is(t, "the nested Lock", got.err, rlock.ErrClosed)
		release()
		must(t, locktest.Get(t, closed, 10*time.Second, "Close returns"))
		if !faultFree(t, s, name) {
			t.Error("the lock stands after Close")
		}
	})
}

// So does Close of another session of the process, in which the owner that the lock was
// handed over from is to begin anew.
func TestCloseEndsTheWaitForAnotherSessionsTransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ses, late := lateDial(t, s, rlock.Config{})
		other, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{})
		must(t, err)
		defer other.Close()
		name := redistest.Name(t)
		seen, release := late.hold(faultRuns(t, "transfer"))
		defer release()
		a, b := handedOver(t, ses, name)
		locktest.Get(t, seen, 5*time.Second, "the transfer")
		ctx, cancel := context.WithCancel(context.WithoutCancel(a.ctx))
		defer cancel() // lest a Close that waits for it hang
		waiter := faultGoLock(rlock.New(other, name), ctx)
		redistest.Eventually(t, 5*time.Second, "it waits", a.hold.Awaited)
		closed := faultGo(other.Close)
		locktest.Is(t, "Lock", locktest.Get(t, waiter, 5*time.Second, "Lock returns").err, rlock.ErrClosed)
		must(t, locktest.Get(t, closed, 5*time.Second, "Close returns"))
		release()
		must(t, b.hold.Unlock())
	})
}

// Unlock cannot know that the lock was lost before: it lets the next one in, who is told as
// soon as Redis is asked. Who has the lock in Redis is left alone.
func TestWhoIsHandedALostLockIsTold(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		lost := make(chan string, 10)
		ses, p := faultDial(t, s, rlock.Config{Trace: &rlock.Trace{Lost: func(name, _, _ string) { lost <- name }}})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
		must(t, err)
		ses.RunFor(name, time.Hour)
		next := lineUp(t, ses, name, within(t, 30*time.Second))
		must(t, s.Do(t, "DEL", name).Error())
		theirs, x, err := rlock.New(other, name).Lock(within(t, 30*time.Second))
		must(t, err)
		seen, release := p.HoldRequest(faultRuns(t, "transfer"))
		defer release()
		must(t, h.Unlock())
		b := locktest.Get(t, next, 5*time.Second, "the next one in")
		must(t, b.err)
		locktest.Get(t, seen, 5*time.Second, "the transfer")
		release()
		locktest.Ends(t, b.ctx, 5*time.Second, rlock.ErrLost) // the watchdog asks after 10 s
		if got := locktest.Get(t, lost, 5*time.Second, "Trace.Lost"); got != name {
			t.Errorf("Trace.Lost of %q", got)
		}
		if err := b.hold.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock: %v; want ErrLost", err)
		}
		quiet(t, ses)
		if n := faultCount(t, s, name, x.Owner()); n != "1" || theirs.Err() != nil {
			t.Errorf("the other session's owner has %q holds, %v", n, context.Cause(theirs))
		}
		must(t, x.Unlock())
	})
}
