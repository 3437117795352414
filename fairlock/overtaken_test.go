package fairlock_test

import (
	"context"
	"testing"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// overtake has a run of two waiters of b, one of whom leaves: the call that says so is about to
// be written when the other one is let in by a message. It returns the hold of that one, and what
// lets the call go.
func overtake(t *testing.T, s *redistest.Server, b *rlock.Session, client *locktest.Gated) (l locked, release func()) {
	t.Helper()
	ctx := within(t, patience)
	m := fairlock.New(dial(t, s, silent()), "x")
	first := lock(t, ctx, m)
	fair := fairlock.New(b, "x")
	next := goQueued(t, ctx, fair, 1)
	brief, cancel := context.WithCancel(ctx)
	defer cancel()
	leaves := goLock(brief, fair)
	queued(t, m, 2)
	seen, release := client.Hold(runs("acquire"))
	t.Cleanup(release)
	cancel()
	locktest.Get(t, seen, patience, "the call that says that a waiter has left is about to be written")
	is(t, "the waiter that leaves", locktest.Get(t, leaves, patience, "Lock returns").err, context.Canceled)
	unlock(t, first)
	return granted(t, next, patience, "the one that is left"), release
}

// A call about a run is written after the run has been let in by a message, served and released.
// What it gets then is given back: the lock, or a place behind another owner.
func TestACallThatItsReleaseOvertakesLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		for _, taken := range []bool{false, true} {
			b, client := locktest.DialGated(t, s, silent())
			l, release := overtake(t, s, b, client)
			unlock(t, l)
			if !taken {
				release()
				nothingLeft(t, s)
				continue
			}
			other := lock(t, within(t, patience), fairlock.New(dial(t, s, silent()), "x"))
			release()
			nothingLeft(t, s, "x")
			unlock(t, other)
			nothingLeft(t, s)
		}
	})
}

// The same while the release is on its way: Unlock finds the lock.
func TestACallThatIsAnsweredDuringTheReleaseTakesNothingFromIt(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		b, client := locktest.DialGated(t, s, silent())
		l, late := overtake(t, s, b, client)
		seen, release := client.Hold(runs("release"))
		defer release()
		unlocked := make(chan error, 1)
		go func() { unlocked <- l.hold.Unlock() }()
		locktest.Get(t, seen, patience, "the release is about to be written")
		late()
		next := goQueued(t, within(t, patience), fairlock.New(b, "x"), 1) // which the session sends behind the answer
		release()
		must(t, locktest.Get(t, unlocked, patience, "Unlock returns"))
		unlock(t, granted(t, next, patience, "the next waiter"))
		nothingLeft(t, s)
	})
}

// The same with a session that closes: Close waits for the call, and gives back what it gets.
func TestCloseGivesBackWhatAnOvertakenCallGets(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		b, client := locktest.DialGated(t, s, silent())
		l, release := overtake(t, s, b, client)
		unlock(t, l)
		closed := goClose(b)
		redistest.Eventually(t, patience, "Close to begin", func() bool {
			_, _, err := fairlock.New(b, "y").TryLock(context.Background())
			return err != nil
		})
		release()
		must(t, locktest.Get(t, closed, patience, "Close returns"))
		nothingLeft(t, s)
	})
}

// A named waiter leaves while its call is on its way, and Redis grants that, for another session has
// the lock under the same name. The hold is taken back, and the other one stays. What the call has
// added to the lease stays too, for Redis does not know how long the other session needs it.
func TestACallOfANamedOwnerThatIsTakenBackLeavesTheLeaseLonger(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		me := rlock.WithOwner(ctx, "me")
		cfg := silent()
		cfg.RedissonWatchdog = cfg.Lease // else a named owner asks for no more than 30 s
		m := fairlock.New(dial(t, s, cfg), "x")
		b, client := locktest.DialGated(t, s, cfg)
		here := lock(t, me, m, rlock.Lease(cfg.Lease/2))
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1) // so that calls of its session go in the background
		brief, cancel := context.WithCancel(me)
		defer cancel()
		seen, release := client.Hold(runs("acquire"))
		defer release()
		leaves := goLock(brief, fairlock.New(b, "x"))
		locktest.Get(t, seen, patience, "the call of the named owner is about to be written")
		cancel()
		is(t, "the waiter that leaves", locktest.Get(t, leaves, patience, "Lock returns").err, context.Canceled)
		release()
		var ttl int64
		redistest.Eventually(t, patience, "the call to be granted and taken back", func() bool {
			ttl, _ = s.Do(t, "PTTL", "x").AsInt64()
			return ttl > cfg.Lease.Milliseconds()/2 && count(t, m, "me") == 1
		})
		if ttl > cfg.Lease.Milliseconds() {
			t.Errorf("the lock lives for %d ms, longer than anything asked for", ttl)
		}
		unlock(t, here)
		unlock(t, granted(t, next, patience, "the next waiter"))
		nothingLeft(t, s)
	})
}
