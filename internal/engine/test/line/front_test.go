package line_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A named caller that comes to the front of its session's queue enters the line at once, though it has asked
// before: its session was not the first and does not listen to the lock's channel, so a release that finds the
// line empty would tell nobody of it, and its next look is a minute away.
func TestANamedCallerThatBecomesTheFrontEntersTheLine(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{PollFloor: time.Minute})
		other := dial(t, s, rlock.Config{Lease: 5 * time.Minute})
		_, block, err := rlock.New(other, st.Name).Lock(st.Ctx)
		must(t, err)
		third := dial(t, s, rlock.Config{Lease: 5 * time.Minute})
		first := locktest.GoLock(rlock.New(third, st.Name), st.Ctx)
		locktest.AwaitInLine(t, s, st.Name, third)
		// Else a release may take it for a client outside the line, and call it: on a busy machine bob may come before it then.
		locktest.AwaitListens(t, s, st.Name)
		ctx, cancel := context.WithCancel(st.Ctx)
		defer cancel()
		front := st.Queue(ctx)
		locktest.AwaitInLine(t, s, st.Name, st.Session)
		next := st.Queue(rlock.WithOwner(st.Ctx, "bob"))
		redistest.Eventually(t, 5*time.Second, "the named one has asked", func() bool { return locktest.CallsSent(t, st.Proxy, "acquire") >= 2 })
		locktest.Quiet(t, st.Session)
		cancel()
		locktest.Is(t, "the front's Lock", locktest.Get(t, front, 5*time.Second, "the front").Err, context.Canceled)
		locktest.Quiet(t, st.Session) // its entry has left
		must(t, block.Unlock())
		must(t, st.In(first).Hold.Unlock())
		must(t, st.In(next).Hold.Unlock())
		locktest.NothingLeft(t, s, st.Session, other, third)
	})
}

// A named caller in front of the queue asks once in a while though its session holds the lock, for the owner may
// hold it elsewhere. It does not listen then, and must not try to again and again: it would keep the lock's
// mutex, and nobody of its session could unlock.
func TestANamedFrontDoesNotSpinWhileItsSessionHoldsTheLock(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{PollFloor: 2 * time.Second}) // what follows an attempt is done before the next one
		other := dial(t, s, rlock.Config{})
		_, block, err := rlock.New(other, st.Name).Lock(st.Ctx)
		must(t, err)
		st.Proxy.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		bob := st.Queue(rlock.WithOwner(st.Ctx, "bob"))
		redistest.Eventually(t, 10*time.Second, "it polls", func() bool { return locktest.CallsSent(t, st.Proxy, "acquire") >= 3 })
		asked, answer := st.Proxy.HoldReply(locktest.Calls(t, "acquire")) // it has just asked, and so does not get in before the TryLock
		defer answer()
		locktest.Get(t, asked, 10*time.Second, "one more attempt")
		answer()
		must(t, s.Do(t, "DEL", st.Name).Error())
		section, h, err := st.Mutex.TryLock(st.Ctx)
		must(t, err)
		locktest.Stays(t, section, time.Second)
		must(t, locktest.Get(t, locktest.Go(h.Unlock), 10*time.Second, "Unlock"))
		must(t, st.In(bob).Hold.Unlock())
		locktest.Is(t, "Unlock", block.Unlock(), rlock.ErrLost)
	})
}

// Two callers name one owner in a session, and wait. The one that stands in the line leaves, and the other enters it before Redis
// hears of that: what takes the first out of the line does not take out the second.
func TestANamedCallerThatLeavesTakesItsOwnEntryOnly(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 2*time.Minute), redistest.Name(t)
		other := dial(t, s, rlock.Config{Lease: 5 * time.Minute})
		_, block, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour})
		leaves, cancel := context.WithCancel(ctx)
		defer cancel()
		m := rlock.New(ses, name)
		first := locktest.GoLock(m, rlock.WithOwner(leaves, "bob"))
		locktest.AwaitInLine(t, s, name, ses)
		second := locktest.GoLock(m, rlock.WithOwner(ctx, "bob"))
		locktest.Quiet(t, ses)
		sent, release := p.HoldRequest(locktest.Calls(t, "release"))
		defer release()
		cancel()
		locktest.Get(t, sent, 5*time.Second, "the release of the first one")
		p.Cut()
		locktest.Quiet(t, ses)
		locktest.AwaitInLine(t, s, name, ses)
		release()
		locktest.Is(t, "the first one's Lock", locktest.Get(t, first, 5*time.Second, "the first one").Err, context.Canceled)
		locktest.Quiet(t, ses)
		must(t, block.Unlock())
		got := locktest.Get(t, second, 5*time.Second, "the second one")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		locktest.NothingLeft(t, s, ses, other)
	})
}
