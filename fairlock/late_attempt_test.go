package fairlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// overtake has a run of two waiters of b, one of whom leaves: the attempt that says so is about to
// be written when Redis gives the lock to the other one, and says so. It returns what becomes of that one, and
// what lets the attempt go.
func overtake(t *testing.T, s *redistest.Server, b *rlock.Session, client *locktest.Gated) (next <-chan locked, release func()) {
	t.Helper()
	ctx := within(t, time.Minute)
	m := fairlock.New(dial(t, s, silent()), "x")
	first := lock(t, ctx, m)
	fair := fairlock.New(b, "x")
	next = goQueued(t, ctx, fair, 1)
	brief, cancel := context.WithCancel(ctx)
	defer cancel()
	leaves := goLock(brief, fair)
	queued(t, m, 2)
	seen, release := client.Hold(runs("acquire"))
	t.Cleanup(release)
	cancel()
	locktest.Get(t, seen, patience, "the attempt that says that a waiter has left is about to be written")
	is(t, "the waiter that leaves", locktest.Get(t, leaves, patience, "Lock returns").err, context.Canceled)
	unlock(t, first)
	return next, release
}

// An attempt for a run is written after Redis has given the lock to that: the answer lets the waiter in, and
// nothing is left behind it.
func TestALateAttemptFindsThatItsRunHasTheLock(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		b, client := locktest.DialGated(t, s, silent())
		next, release := overtake(t, s, b, client)
		redistest.Eventually(t, patience, "Redis to give the lock to the one that is left", func() bool {
			n, _ := s.Do(t, "HLEN", "x").AsInt64()
			return n == 1
		})
		release()
		unlock(t, granted(t, next, patience, "the one that is left"))
		nothingLeft(t, s)
	})
}

// The same when that is over: what was said is true no more, and the waiter stands in the line.
func TestALateAttemptFindsThatAnotherHasTheLock(t *testing.T) {
	redistest.SkipShort(t) // until a grant is over
	each(t, func(t *testing.T, s *redistest.Server) {
		b, client := locktest.DialGated(t, s, silent())
		next, release := overtake(t, s, b, client)
		other := lock(t, within(t, time.Minute), fairlock.New(dial(t, s, silent()), "x")) // when the grant is over
		release()
		queued(t, fairlock.New(b, "x"), 1)
		waits(t, next, "the one that is left")
		unlock(t, other)
		unlock(t, granted(t, next, patience, "the one that is left"))
		nothingLeft(t, s)
	})
}

// The same with a session that closes: Close waits for the attempt, and gives back what it gets.
func TestCloseGivesBackWhatALateAttemptGets(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		b, client := locktest.DialGated(t, s, silent())
		next, release := overtake(t, s, b, client)
		closed := goClose(b)
		redistest.Eventually(t, patience, "Close to begin", func() bool {
			_, h, err := fairlock.New(b, "y").TryLock(context.Background())
			_ = h.Unlock() // else the next one is refused for that
			return errors.Is(err, rlock.ErrClosed)
		})
		release()
		must(t, locktest.Get(t, closed, patience, "Close returns"))
		is(t, "the one that is left", locktest.Get(t, next, patience, "Lock returns").err, rlock.ErrClosed)
		nothingLeft(t, s)
	})
}

// A named waiter leaves while its attempt is on its way, and Redis grants that, for another session has
// the lock under the same name. The hold is taken back, and the other one stays. What the attempt has
// added to the lease stays too, for Redis does not know how long the other session needs it.
func TestAnAttemptOfANamedOwnerThatIsTakenBackLeavesTheLeaseLonger(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		me := rlock.WithOwner(ctx, "me")
		cfg := silent()
		cfg.RedissonWatchdog = cfg.Lease // else a named owner asks for no more than 30 s
		m := fairlock.New(dial(t, s, cfg), "x")
		b, client := locktest.DialGated(t, s, cfg)
		here := lock(t, me, m, rlock.Lease(cfg.Lease/2))
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		brief, cancel := context.WithCancel(me)
		defer cancel()
		seen, release := client.Hold(runs("acquire"))
		defer release()
		leaves := goLock(brief, fairlock.New(b, "x"))
		locktest.Get(t, seen, patience, "the attempt of the named owner is about to be written")
		cancel()
		release()
		is(t, "the waiter that leaves", locktest.Get(t, leaves, patience, "Lock returns").err, context.Canceled)
		var ttl int64
		redistest.Eventually(t, patience, "the attempt to be granted and taken back", func() bool {
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

// An attempt that was lost on its way, and was sent again, arrives behind an Extend: the lease stays as it was extended.
func TestALateAttemptDoesNotCutAnExtension(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		p := newProxy(t, s)
		a := dialVia(t, s, p, rlock.Config{})
		unlock(t, lock(t, ctx, fairlock.New(a, "warm"))) // the script is known
		var late []string
		isAttempt := runs("acquire")
		p.DropRequest(func(cmd []string) bool {
			if late == nil && isAttempt(cmd) {
				late = cmd
				return true
			}
			return false
		})
		l := granted(t, goLock(ctx, fairlock.New(a, "x"), rlock.Lease(400*time.Millisecond)), patience, "the second attempt")
		must(t, l.hold.Extend(ctx, 1200*time.Millisecond))
		must(t, s.Do(t, late...).Error())
		if ms, err := s.Do(t, "PTTL", "x").AsInt64(); err != nil || ms < l.hold.Remaining().Milliseconds() {
			t.Errorf("Redis keeps it for %d ms, %v; the session relies on it for %v more", ms, err, l.hold.Remaining())
		}
		unlock(t, l)
	})
}

// A lease that is shorter than that of a grant ends when it says, also if the caller has stood in the line.
func TestAShortLeaseBehindAnotherSession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		first := lock(t, ctx, fairlock.New(dial(t, s, silent()), "x"))
		const lease = 400 * time.Millisecond
		next := goQueued(t, ctx, fairlock.New(dial(t, s, silent()), "x"), 1, rlock.Lease(lease))
		unlock(t, first)
		l := granted(t, next, patience, "the one with a lease of its own")
		if ms, err := s.Do(t, "PTTL", "x").AsInt64(); err != nil || ms > lease.Milliseconds() {
			t.Errorf("Redis keeps it for %d ms, %v; want %v at most", ms, err, lease)
		}
		must(t, l.hold.Unlock())
		nothingLeft(t, s)
	})
}
