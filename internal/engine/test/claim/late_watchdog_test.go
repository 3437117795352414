package claim_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// The watchdog ends sections in time, but it may come late: after a pause of the process it is one
// goroutine of many that go on. What it has not done by then, each operation sees by itself. Here it
// is stuck on its visit to another lock of the session, which no code outside of the tests can do.

// A late is a session whose watchdog does not come, with a lock that was held when that began.
type late struct {
	*locktest.Stage
	section context.Context
	hold    *rlock.Hold
	resume  func()
}

const lateLease = 1500 * time.Millisecond

// bait takes the other lock, which has to end before the one that the test is about.
func (l *late) bait(lease time.Duration) {
	l.T.Helper()
	_, _, err := rlock.New(l.Session, "other").Lock(l.Ctx, rlock.Lease(lease))
	must(l.T, err)
}

// stall has the watchdog stuck from its next visit to the other lock on, which is at the end of
// that at the latest.
func (l *late) stall() {
	l.T.Helper()
	resume, ok := locktest.Stall(l.Session, "other")
	if !ok {
		l.T.Skip("SKIPPED: the machine was too slow, the other lock has ended")
	}
	l.resume = resume
}

// over waits until the lock can be trusted no longer, which the watchdog has not noticed.
func (l *late) over() {
	l.T.Helper()
	redistest.Eventually(l.T, 10*time.Second, "the lease to be over", func() bool { return l.hold.Remaining() == 0 })
	if err := l.section.Err(); err != nil {
		l.T.Fatalf("the watchdog has come: %v, %v", context.Cause(l.section), l.Losses())
	}
}

// eachLate runs a test with a lock that is held under a watchdog which is stuck.
func eachLate(t *testing.T, test func(l *late), opts ...rlock.LockOption) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		l := &late{Stage: locktest.NewStage(t, s, rlock.Config{Lease: lateLease, PollFloor: time.Second})}
		l.bait(lateLease * 2 / 3)
		l.section, l.hold = l.Lock(l.Ctx, opts...)
		l.stall()
		defer l.resume()
		test(l)
	})
}

// lostForGood checks that the hold is lost, and stays so.
func (l *late) lostForGood() {
	l.T.Helper()
	if d := l.hold.Remaining(); d != 0 {
		l.T.Errorf("%v remain", d)
	}
	locktest.Is(l.T, "Unlock", l.hold.Unlock(), rlock.ErrLost)
	locktest.Ends(l.T, l.section, 10*time.Second, rlock.ErrLost)
}

// A nested Lock finds that the section is over, and ends it. Else it would wait, as an outermost one,
// for the hold that it should have been nested in.
func TestLateWatchdogNestedLock(t *testing.T) {
	eachLate(t, func(l *late) {
		l.over()
		nested := locktest.GoLock(l.Mutex, l.section)
		got := locktest.Get(t, nested, 10*time.Second, "the nested Lock")
		locktest.Is(t, "the nested Lock", got.Err, rlock.ErrNotAcquired, context.Canceled)
		l.lostForGood()
	})
}

// An Extend comes too late.
func TestLateWatchdogExtend(t *testing.T) {
	eachLate(t, func(l *late) {
		l.over()
		locktest.Is(l.T, "Extend", l.hold.Extend(l.Ctx, time.Minute), rlock.ErrLost)
		l.lostForGood()
	}, rlock.Lease(lateLease))
}

// The session's next waiter does not enter a claim that is over: it gets one of its own.
func TestLateWatchdogWaiter(t *testing.T) {
	eachLate(t, func(l *late) {
		next := l.Queue(l.Ctx)
		l.over()
		l.lostForGood()
		got := l.In(next)
		if got.Hold.Owner() == l.hold.Owner() || got.Hold.Remaining() == 0 || l.Count() != 0 {
			l.T.Errorf("the waiter was let in as %s for %v, %d hand-overs", got.Hold.Owner(), got.Hold.Remaining(), l.Count())
		}
		must(l.T, got.Hold.Unlock())
	})
}

// A waiter that was handed the lock in time, and is late itself, does not enter what is over.
func TestLateWatchdogLateWaiter(t *testing.T) {
	eachLate(t, func(l *late) {
		ctx := &locktest.LateContext{Context: l.Ctx, Asked: make(chan struct{}), Answer: make(chan struct{})}
		next := l.Queue(ctx)
		ctx.Slow.Store(true)
		locktest.Unhurried(l.Session, l.Name)
		must(l.T, l.hold.Unlock())
		locktest.Get(l.T, ctx.Asked, 10*time.Second, "the waiter")
		redistest.Eventually(l.T, 10*time.Second, "the lease to be over in Redis", func() bool { return len(l.Hash()) == 0 })
		close(ctx.Answer)
		got := l.In(next)
		if got.Hold.Remaining() == 0 || got.Hold.Owner() == l.hold.Owner() {
			l.T.Errorf("the waiter was let in as %s for %v", got.Hold.Owner(), got.Hold.Remaining())
		}
		must(l.T, got.Hold.Unlock())
	})
}

// A renewalClient has the answer to the first renewal of x, and gives it late.
type renewalClient struct {
	rueidis.Client
	renews       func(cmd []string) bool
	once         atomic.Bool
	ran, deliver chan struct{}
}

func (c *renewalClient) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	first := slices.ContainsFunc(cmds, func(cmd rueidis.Completed) bool {
		return c.renews(cmd.Commands()) && slices.Contains(cmd.Commands(), "x")
	})
	if !first || !c.once.CompareAndSwap(false, true) {
		return c.Client.DoMulti(ctx, cmds...)
	}
	r := c.Client.DoMulti(ctx, cmds...)
	close(c.ran)
	<-c.deliver
	return r
}

// A renewal whose answer is taken in after the end of the trust does not bring the section back.
func TestLateWatchdogLateRenewal(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const renewed = lateLease * 4 / 3 // and a third of it later the other lock is taken, for another third
		c := &renewalClient{Client: s.Client(t), renews: locktest.Calls(t, "renew"), ran: make(chan struct{}), deliver: make(chan struct{})}
		ses, err := rlock.NewSession(context.Background(), c, rlock.Config{Lease: renewed})
		must(t, err)
		t.Cleanup(func() { must(t, ses.Close()) })
		l := &late{Stage: &locktest.Stage{T: t, Server: s, Session: ses, Ctx: within(t, 60*time.Second), Name: "x", Mutex: rlock.New(ses, "x")}}
		l.section, l.hold = l.Lock(l.Ctx)
		locktest.Get(t, c.ran, 10*time.Second, "the renewal")
		l.bait(renewed / 3) // now, so that it is not renewed together with x
		if l.hold.Remaining() < renewed/3 {
			t.Skip("SKIPPED: the machine was too slow, the other lock ends too late")
		}
		l.stall()
		defer l.resume()
		l.over()
		close(c.deliver)
		locktest.Ends(t, l.section, 10*time.Second, rlock.ErrLost) // by the answer: the watchdog does not come
		l.lostForGood()
	})
}

// A grant that is taken in too late is none.
func TestLateGrant(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		slow := make(chan struct{})
		var once atomic.Bool
		ses := dial(t, s, rlock.Config{Lease: lateLease / 2, Trace: &rlock.Trace{Attempt: func(e locktrace.Attempt) {
			if e.Granted && once.CompareAndSwap(false, true) {
				<-slow
			}
		}}})
		ctx := within(t, 20*time.Second)
		locked := locktest.GoLock(rlock.New(ses, "x"), ctx)
		redistest.Eventually(t, 10*time.Second, "the grant", func() bool { return locktest.Owners(t, s, "x") == 1 })
		redistest.Eventually(t, 10*time.Second, "its end", func() bool { return locktest.Free(t, s, "x") })
		close(slow)
		got := locktest.Get(t, locked, 10*time.Second, "Lock")
		must(t, got.Err)
		if d := got.Hold.Remaining(); d == 0 || got.Ctx.Err() != nil {
			t.Errorf("granted for %v: %v", d, context.Cause(got.Ctx))
		}
		if err := got.Hold.Unlock(); err != nil && !errors.Is(err, rlock.ErrLost) {
			t.Error(err)
		}
	})
}
