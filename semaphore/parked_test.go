package semaphore_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Permits that come free while the caller in front asks Redis go to that caller when it is refused,
// and to the next ones when it is not: they do not travel through Redis.
func TestPermitsWaitForTheFrontsAnswer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, granted := range []bool{false, true} {
			st := newStage(t, s, 2, slow())
			_, one := st.take(1)
			_, two := st.take(1)
			seen, release := st.p.HoldRequest(locktest.Runs(src["acquire"]))
			front := acquire(st.ctx, st.m, 1)
			locktest.Get(t, seen, 10*time.Second, "the front's attempt")
			must(t, one.Release())
			if granted {
				must(t, s.Do(t, "INCRBY", "x", "1").Error())
			}
			release()
			g := st.in(front)
			if same := g.p.Owner() == one.Owner(); same == granted {
				t.Errorf("granted %v: the front has the permit that came free: %v", granted, same)
			}
			if n := taken(t, s, "x"); !granted && n != 2 {
				t.Errorf("%d permits are taken, want 2", n)
			}
			if sent := locktest.Sent(st.p, locktest.Runs(src["release"])); !granted && sent != 0 {
				t.Errorf("the permit was released %d times", sent)
			}
			must(t, two.Release())
			must(t, g.p.Release())
			redistest.Eventually(t, 10*time.Second, "all to come back", func() bool { return taken(t, s, "x") == 0 })
			s.FlushAll(t)
		}
	})
}

// Where the caller in front gives up meanwhile, or wants another number, they go back to Redis.
func TestPermitsThatNobodyTakesGoBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, 2, slow())
		_, one := st.take(1)
		_, two := st.take(1)
		seen, release := st.p.HoldRequest(locktest.Runs(src["acquire"]))
		ctx, cancel := context.WithCancel(st.ctx)
		front := acquire(ctx, st.m, 1)
		locktest.Get(t, seen, 10*time.Second, "the front's attempt")
		must(t, one.Release())
		cancel()
		is(t, "the front", locktest.Get(t, front, 10*time.Second, "the front").err, rlock.ErrNotAcquired, context.Canceled)
		release()
		redistest.Eventually(t, 10*time.Second, "it to come back", func() bool { return taken(t, s, "x") == 1 })
		must(t, two.Release())
	})
}

// A refusal that is older than the session's own release says nothing of what that release gave
// back. The message of the release does not wake the front, since its time slice is over; so it
// looks again when the permits have been left to others for a moment.
func TestARefusalOlderThanTheOwnReleaseKeepsNoWaiter(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		cfg := slow()
		cfg.HandOverLimit = 1
		st := newStage(t, s, 1, cfg)
		_, first := st.take(1)
		second := st.queue(st.ctx, 1)
		third := st.queue(st.ctx, 1)
		must(t, first.Release())
		g := st.in(second) // the hand-over that the slice allows
		seen, release := st.p.HoldReply(locktest.Runs(src["acquire"]))
		must(t, s.Do(t, "PUBLISH", channel("x"), "1").Error())
		locktest.Get(t, seen, 10*time.Second, "the refusal of the third")
		released := start(g.p.Release)
		redistest.Eventually(t, 10*time.Second, "the permit to come back", func() bool { return taken(t, s, "x") == 0 })
		release()
		must(t, locktest.Get(t, released, 10*time.Second, "Release"))
		must(t, st.in(third).p.Release())
	})
}
