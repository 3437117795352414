package rlock_test

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
	*stage
	section context.Context
	hold    *rlock.Hold
	resume  func()
}

const lateLease = 1500 * time.Millisecond

// bait takes the other lock, which has to end before the one that the test is about.
func (l *late) bait(lease time.Duration) {
	l.t.Helper()
	_, _, err := rlock.New(l.ses, "other").Lock(l.ctx, rlock.Lease(lease))
	must(l.t, err)
}

// stall has the watchdog stuck from its next visit to the other lock on, which is at the end of
// that at the latest.
func (l *late) stall() {
	l.t.Helper()
	resume, ok := l.ses.Stall("other")
	if !ok {
		l.t.Skip("SKIPPED: the machine was too slow, the other lock has ended")
	}
	l.resume = resume
}

// over waits until the lock can be trusted no longer, which the watchdog has not noticed.
func (l *late) over() {
	l.t.Helper()
	redistest.Eventually(l.t, 10*time.Second, "the lease to be over", func() bool { return l.hold.Remaining() == 0 })
	if err := l.section.Err(); err != nil {
		l.t.Fatalf("the watchdog has come: %v, %v", context.Cause(l.section), l.losses())
	}
}

// eachLate runs a test with a lock that is held under a watchdog which is stuck.
func eachLate(t *testing.T, test func(l *late), opts ...rlock.LockOption) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		l := &late{stage: newStage(t, s, rlock.Config{Lease: lateLease, PollFloor: time.Second})}
		l.bait(lateLease * 2 / 3)
		l.section, l.hold = l.lock(l.ctx, opts...)
		l.stall()
		defer l.resume()
		test(l)
	})
}

// lostForGood checks that the hold is lost, and stays so.
func (l *late) lostForGood() {
	l.t.Helper()
	if d := l.hold.Remaining(); d != 0 {
		l.t.Errorf("%v remain", d)
	}
	locktest.Is(l.t, "Unlock", l.hold.Unlock(), rlock.ErrLost)
	locktest.Ends(l.t, l.section, 10*time.Second, rlock.ErrLost)
}

// A nested Lock finds that the section is over, and ends it. Else it would wait, as an outermost one,
// for the hold that it should have been nested in.
func TestLateWatchdogNestedLock(t *testing.T) {
	eachLate(t, func(l *late) {
		l.over()
		nested := faultGoLock(l.m, l.section)
		got := locktest.Get(t, nested, 10*time.Second, "the nested Lock")
		locktest.Is(t, "the nested Lock", got.err, rlock.ErrNotAcquired, context.Canceled)
		l.lostForGood()
	})
}

// An Extend comes too late.
func TestLateWatchdogExtend(t *testing.T) {
	eachLate(t, func(l *late) {
		l.over()
		locktest.Is(l.t, "Extend", l.hold.Extend(l.ctx, time.Minute), rlock.ErrLost)
		l.lostForGood()
	}, rlock.Lease(lateLease))
}

// The session's next waiter does not enter a claim that is over: it gets one of its own.
func TestLateWatchdogWaiter(t *testing.T) {
	eachLate(t, func(l *late) {
		next := l.queue(l.ctx)
		l.over()
		l.lostForGood()
		got := l.in(next)
		if got.hold.Owner() == l.hold.Owner() || got.hold.Remaining() == 0 || l.count() != 0 {
			l.t.Errorf("the waiter was let in as %s for %v, %d hand-overs", got.hold.Owner(), got.hold.Remaining(), l.count())
		}
		must(l.t, got.hold.Unlock())
	})
}

// A waiter that was handed the lock in time, and is late itself, does not enter what is over.
func TestLateWatchdogLateWaiter(t *testing.T) {
	eachLate(t, func(l *late) {
		ctx := &lateContext{Context: l.ctx, asked: make(chan struct{}), answer: make(chan struct{})}
		next := l.queue(ctx)
		ctx.slow.Store(true)
		l.ses.Unhurried(l.name)
		must(l.t, l.hold.Unlock())
		locktest.Get(l.t, ctx.asked, 10*time.Second, "the waiter")
		redistest.Eventually(l.t, 10*time.Second, "the lease to be over in Redis", func() bool { return len(l.hash()) == 0 })
		close(ctx.answer)
		got := l.in(next)
		if got.hold.Remaining() == 0 || got.hold.Owner() == l.hold.Owner() {
			l.t.Errorf("the waiter was let in as %s for %v", got.hold.Owner(), got.hold.Remaining())
		}
		must(l.t, got.hold.Unlock())
	})
}

// A lateContext is asked by a caller whether it has ended, and answers late.
type lateContext struct {
	context.Context
	slow          atomic.Bool
	asked, answer chan struct{}
}

func (c *lateContext) Err() error {
	if c.slow.CompareAndSwap(true, false) {
		close(c.asked)
		<-c.answer
	}
	return c.Context.Err()
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
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const renewed = lateLease * 4 / 3 // and a third of it later the other lock is taken, for another third
		c := &renewalClient{Client: s.Client(t), renews: faultRuns(t, "renew"), ran: make(chan struct{}), deliver: make(chan struct{})}
		ses, err := rlock.NewSession(context.Background(), c, rlock.Config{Lease: renewed})
		must(t, err)
		t.Cleanup(func() { must(t, ses.Close()) })
		l := &late{stage: &stage{t: t, s: s, ses: ses, ctx: within(t, 60*time.Second), name: "x", m: rlock.New(ses, "x")}}
		l.section, l.hold = l.lock(l.ctx)
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
		locked := faultGoLock(rlock.New(ses, "x"), ctx)
		redistest.Eventually(t, 10*time.Second, "the grant", func() bool { return faultOwners(t, s, "x") == 1 })
		redistest.Eventually(t, 10*time.Second, "its end", func() bool { return faultFree(t, s, "x") })
		close(slow)
		got := locktest.Get(t, locked, 10*time.Second, "Lock")
		must(t, got.err)
		if d := got.hold.Remaining(); d == 0 || got.ctx.Err() != nil {
			t.Errorf("granted for %v: %v", d, context.Cause(got.ctx))
		}
		if err := got.hold.Unlock(); err != nil && !errors.Is(err, rlock.ErrLost) {
			t.Error(err)
		}
	})
}
