package semaphore_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Permits that were granted to a session pass on in memory when they are confirmed, and wait for that without a
// section. One set of them waits at a time: what others of the session release meanwhile goes back to Redis, and none
// is forgotten.
func TestPermitsThatWaitToBeConfirmedAreNotForgotten(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, 2, rlock.Config{PollFloor: time.Hour})
		other := semaphore.New(dial(t, s, slow()), "x", 2)
		_, one, err := other.Acquire(st.ctx, 1)
		must(t, err)
		_, two, err := other.Acquire(st.ctx, 1)
		must(t, err)
		first := st.queue(st.ctx, 1)
		must(t, one.Release())
		a := st.in(first)
		second := st.queue(st.ctx, 1)
		locktest.Get(t, st.refused, 10*time.Second, "the second to stand in the line")
		third := st.queue(st.ctx, 1)
		_, release := st.p.HoldReply(locktest.Runs(src["renew"]))
		defer release()
		must(t, a.p.Release()) // its permit waits to be confirmed, for the second
		must(t, two.Release())
		b := st.in(second)         // granted meanwhile
		back := start(b.p.Release) // if its permit does not wait too, the answer comes behind the one that is held
		pass(t, 5*time.Millisecond)
		release()
		must(t, locktest.Get(t, back, 10*time.Second, "the second release"))
		must(t, st.in(third).p.Release())
		redistest.Eventually(t, 5*time.Second, "all permits to be back", func() bool { return taken(t, s, "x") == 0 && value(t, s, "x") == "2" })
	})
}

// What was granted to a caller that was alone is confirmed after 10 ms; at once if another caller joins it.
func TestAJoiningCallerHasGrantedPermitsConfirmed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, 1, rlock.Config{PollFloor: time.Hour})
		_, one, err := semaphore.New(dial(t, s, slow()), "x", 1).Acquire(st.ctx, 1)
		must(t, err)
		first := st.queue(st.ctx, 1)
		must(t, one.Release())
		a := st.in(first)
		renewed := func() bool { return locktest.Sent(st.p, locktest.Runs(src["renew"])) > 0 }
		if redistest.MadeUpClock() && renewed() {
			t.Error("it was confirmed before somebody joined")
		}
		second := st.queue(st.ctx, 1)
		for range 5 {
			pass(t, time.Millisecond)
		}
		if redistest.MadeUpClock() && !renewed() {
			t.Error("it was not confirmed when somebody joined")
		}
		must(t, a.p.Release())
		must(t, st.in(second).p.Release())
	})
}
