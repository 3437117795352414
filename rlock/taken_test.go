package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// takenBy checks that err says who has x.
func takenBy(t *testing.T, what string, err error, owner string) {
	t.Helper()
	var taken *rlock.TakenError
	if !errors.As(err, &taken) || !errors.Is(err, rlock.ErrNotAcquired) {
		t.Fatalf("%s: %v, want a TakenError that matches ErrNotAcquired", what, err)
	}
	if taken.Name != "x" || taken.Owner != owner {
		t.Errorf("%s: %q is held by %q, want x and %q", what, taken.Name, taken.Owner, owner)
	}
	if owner == "" && taken.TTL != 0 || owner != "" && (taken.TTL <= 0 || taken.TTL > 30*time.Second+time.Millisecond) {
		t.Errorf("%s: the lease ends in %v, want what is left of 30s", what, taken.TTL)
	}
	if owner != "" && !strings.Contains(err.Error(), owner) {
		t.Errorf("%s: the text %q does not say who", what, err)
	}
}

// Who was refused learns who has the lock: in another session or its own, at once or after a wait, in front or behind
// others.
func TestARefusalSaysWhoHasTheLock(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex) {
		_, h, err := elsewhere.Lock(ctx)
		must(t, err)
		_, _, err = m.TryLock(ctx)
		takenBy(t, "TryLock", err, h.Owner())
		_, _, err = elsewhere.TryLock(ctx)
		takenBy(t, "TryLock of the same session", err, h.Owner())
		_, _, err = m.Lock(ctx, rlock.Wait(0))
		takenBy(t, "Wait(0)", err, h.Owner())
		_, _, err = m.Lock(ctx, rlock.Wait(50*time.Millisecond))
		takenBy(t, "Wait", err, h.Owner())
		_, _, err = m.Lock(ctx, rlock.Retry(rlock.Limit(rlock.Linear(time.Millisecond), 2)))
		takenBy(t, "Retry", err, h.Owner())
		_, _, err = elsewhere.Lock(ctx, rlock.Wait(50*time.Millisecond))
		takenBy(t, "Wait of the same session", err, h.Owner())

		third := dial(t, s, rlock.Config{})
		waits, stop := context.WithCancel(ctx)
		waiter := locktest.Go(func() error { _, _, err := atLeastKinds[kindOf(m)](third).Lock(waits); return err })
		redistest.Eventually(t, 5*time.Second, "another session to stand in the line", func() bool {
			n, err := s.Do(t, "EXISTS", "relock_line1:{x}").AsInt64()
			return err == nil && n == 1
		})
		_, _, err = m.Lock(ctx, rlock.Wait(50*time.Millisecond))
		takenBy(t, "Wait behind others", err, h.Owner())
		stop()
		locktest.Is(t, "the other's Lock", locktest.Get(t, waiter, 5*time.Second, "it"), context.Canceled)
		must(t, h.Unlock())
	})
}

// A caller that waits without a bound is told why its context has ended, and nothing else.
func TestAWaitThatItsContextEndsIsNoTakenError(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex) {
		_, h, err := elsewhere.Lock(ctx)
		must(t, err)
		ends, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, _, err = m.Lock(ends)
		locktest.Is(t, "Lock", err, rlock.ErrNotAcquired, context.DeadlineExceeded)
		if errors.As(err, new(*rlock.TakenError)) {
			t.Errorf("%v is a TakenError", err)
		}
		must(t, h.Unlock())
	})
}

// Readers keep a writer out, and a writer readers; of several it is one of them.
func TestARefusalOfOneSideSaysWhoIsOnTheOther(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m, elsewhere := rwlock.New(dial(t, s, rlock.Config{}), "x"), rwlock.New(dial(t, s, rlock.Config{}), "x")
		_, w, err := elsewhere.Lock(ctx)
		must(t, err)
		_, _, err = m.TryRLock(ctx)
		takenBy(t, "TryRLock", err, w.Owner())
		_, _, err = m.RLock(ctx, rlock.Wait(50*time.Millisecond))
		takenBy(t, "RLock with Wait", err, w.Owner())
		must(t, w.Unlock())
		_, r, err := elsewhere.RLock(ctx)
		must(t, err)
		_, _, err = m.TryLock(ctx)
		takenBy(t, "TryLock", err, r.Owner())
		_, _, err = m.Lock(ctx, rlock.Wait(50*time.Millisecond))
		takenBy(t, "Lock with Wait", err, r.Owner())
		must(t, r.Unlock())
	})
}

// Of permits nobody can say who has the one that is missing.
func TestARefusalOfPermitsNamesNoOwner(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, sem := within(t, 10*time.Second), semaphore.New(dial(t, s, rlock.Config{}), "x", 1)
		_, p, err := sem.Acquire(ctx, 1)
		must(t, err)
		_, _, err = sem.TryAcquire(ctx, 1)
		takenBy(t, "TryAcquire", err, "")
		must(t, p.Release())
	})
}
