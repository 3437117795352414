package rlock_test

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
		st := newStage(t, s, rlock.Config{PollFloor: time.Minute})
		other := dial(t, s, rlock.Config{Lease: 5 * time.Minute})
		_, block, err := rlock.New(other, st.name).Lock(st.ctx)
		must(t, err)
		third := dial(t, s, rlock.Config{Lease: 5 * time.Minute})
		first := faultGoLock(rlock.New(third, st.name), st.ctx)
		awaitInLine(t, s, st.name, third)
		ctx, cancel := context.WithCancel(st.ctx)
		defer cancel()
		front := st.queue(ctx)
		awaitInLine(t, s, st.name, st.ses)
		next := st.queue(rlock.WithOwner(st.ctx, "bob"))
		redistest.Eventually(t, 5*time.Second, "the named one has asked", func() bool { return faultSent(t, st.p, "acquire") >= 2 })
		quiet(t, st.ses)
		cancel()
		locktest.Is(t, "the front's Lock", locktest.Get(t, front, 5*time.Second, "the front").err, context.Canceled)
		quiet(t, st.ses) // its entry has left
		must(t, block.Unlock())
		must(t, st.in(first).hold.Unlock())
		must(t, st.in(next).hold.Unlock())
		nothingLeft(t, s, st.ses, other, third)
	})
}

// A named caller in front of the queue asks once in a while though its session holds the lock, for the owner may
// hold it elsewhere. It does not listen then, and must not try to again and again: it would keep the lock's
// mutex, and nobody of its session could unlock.
func TestANamedFrontDoesNotSpinWhileItsSessionHoldsTheLock(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{PollFloor: 2 * time.Second}) // what follows an attempt is done before the next one
		other := dial(t, s, rlock.Config{})
		_, block, err := rlock.New(other, st.name).Lock(st.ctx)
		must(t, err)
		st.p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		bob := st.queue(rlock.WithOwner(st.ctx, "bob"))
		redistest.Eventually(t, 10*time.Second, "it polls", func() bool { return faultSent(t, st.p, "acquire") >= 3 })
		asked, answer := st.p.HoldReply(faultRuns(t, "acquire")) // it has just asked, and so does not get in before the TryLock
		defer answer()
		locktest.Get(t, asked, 10*time.Second, "one more attempt")
		answer()
		must(t, s.Do(t, "DEL", st.name).Error())
		section, h, err := st.m.TryLock(st.ctx)
		must(t, err)
		faultStays(t, section, time.Second)
		must(t, locktest.Get(t, faultGo(h.Unlock), 10*time.Second, "Unlock"))
		must(t, st.in(bob).hold.Unlock())
		locktest.Is(t, "Unlock", block.Unlock(), rlock.ErrLost)
	})
}
