package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

var atLeastKinds = map[string]func(s *rlock.Session) locktest.Mutex{
	"plain":      func(s *rlock.Session) locktest.Mutex { return rlock.New(s, "x") },
	"fenced":     func(s *rlock.Session) locktest.Mutex { return rlock.New(s, "x", rlock.FencedFor(time.Minute)) },
	"fair":       func(s *rlock.Session) locktest.Mutex { return fairlock.New(s, "x") },
	"write side": func(s *rlock.Session) locktest.Mutex { return rwlock.New(s, "x") },
}

// eachAtLeast runs fn for each of those kinds, with two sessions.
func eachAtLeast(t *testing.T, fn func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex)) {
	t.Parallel()
	for name, of := range atLeastKinds {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ses, other := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
				fn(t, s, within(t, time.Minute), ses, of(ses), of(other))
			})
		})
	}
}

// kindOf is the name of the kind of a lock among those.
func kindOf(m locktest.Mutex) string {
	switch m.(type) {
	case *fairlock.Mutex:
		return "fair"
	case *rwlock.RWMutex:
		return "write side"
	}
	return "plain"
}

// waitsOf reports whether a caller of the session waits for the lock.
func waitsOf(ses *rlock.Session, m locktest.Mutex) func() bool {
	return func() bool {
		switch kindOf(m) {
		case "fair":
			return locktest.FairWaitersOf(ses, "x") == 1
		case "write side":
			return locktest.SideWaitersOf(ses, "x") == 1
		}
		return locktest.WaitersOf(ses, "x") == 1
	}
}

// An Unlock before the time leaves the lock standing for the rest of it: nobody comes in before, those who wait come in
// then, and not when they happen to look.
func TestAtLeastLeavesTheLockStanding(t *testing.T) {
	const d = 700 * time.Millisecond // shorter than a look
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, _ *rlock.Session, m, elsewhere locktest.Mutex) {
		began := time.Now()
		section, h, err := m.Lock(ctx, rlock.AtLeast(d))
		must(t, err)
		got := time.Now()
		waiter := locktest.Go(func() error {
			_, h, err := elsewhere.Lock(ctx)
			if err == nil {
				err = h.Unlock()
			}
			return err
		})
		redistest.Eventually(t, 5*time.Second, "the waiter to stand in the line", func() bool {
			n, err := s.Do(t, "EXISTS", "relock_line1:{x}").AsInt64()
			return err == nil && n == 1
		})
		must(t, h.Unlock())
		locktest.Ends(t, section, time.Second, rlock.ErrReleased)
		if left := locktest.PTTL(t, s, "x"); left > d || left < d-time.Since(began)-time.Millisecond {
			t.Errorf("the lock stands for %v yet, want what is left of %v", left, d)
		}
		_, _, err = m.TryLock(ctx)
		locktest.Is(t, "TryLock of the same session", err, rlock.ErrNotAcquired)
		_, _, err = elsewhere.TryLock(ctx)
		locktest.Is(t, "TryLock elsewhere", err, rlock.ErrNotAcquired)
		must(t, locktest.Get(t, waiter, 5*time.Second, "the waiter"))
		if took := time.Since(got); took < d || took > d+s.Slack() {
			t.Errorf("the waiter was in after %v, want %v", took, d)
		}
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrNotHeld)
	})
}

// An Unlock after the time is like any other.
func TestAtLeastIsOverWhenItsTimeIs(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, _ *rlock.Session, m, elsewhere locktest.Mutex) {
		_, h, err := m.Lock(ctx, rlock.AtLeast(20*time.Millisecond))
		must(t, err)
		time.Sleep(21 * time.Millisecond)
		must(t, h.Unlock())
		_, h, err = elsewhere.TryLock(ctx)
		must(t, err)
		must(t, h.Unlock())
	})
}

// It may be longer than the lease that the watchdog renews.
func TestAtLeastMayExceedTheLease(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex) {
		_, h, err := m.Lock(ctx, rlock.AtLeast(time.Hour))
		must(t, err)
		must(t, h.Unlock())
		must(t, ses.Close())
		if left := locktest.PTTL(t, s, "x"); left < 59*time.Minute || left > time.Hour {
			t.Errorf("the lock stands for %v yet, want an hour", left)
		}
		_, _, err = elsewhere.TryLock(ctx)
		locktest.Is(t, "TryLock elsewhere", err, rlock.ErrNotAcquired)
	})
}

// A session that closes with an open section leaves the lock as an Unlock does.
func TestAtLeastOutlivesClose(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, elsewhere locktest.Mutex) {
		section, h, err := m.Lock(ctx, rlock.AtLeast(10*time.Second))
		must(t, err)
		must(t, ses.Close())
		locktest.Ends(t, section, time.Second, rlock.ErrClosed)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrClosed)
		if left := locktest.PTTL(t, s, "x"); left < time.Second || left > 10*time.Second {
			t.Errorf("the lock stands for %v yet, want what is left of 10s", left)
		}
	})
}

// Nested holds count together, in whatever order they are unlocked, and the longest time of theirs holds; the callers
// of the session that wait are let in by Redis, and not in memory.
func TestAtLeastOfNestedHolds(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, m, _ locktest.Mutex) {
		section, outer, err := m.Lock(ctx)
		must(t, err)
		_, inner, err := m.Lock(section, rlock.AtLeast(10*time.Second))
		must(t, err)
		_, innermost, err := m.Lock(section, rlock.AtLeast(time.Second))
		must(t, err)
		waiter := locktest.Go(func() error { _, _, err := m.Lock(ctx, rlock.Wait(s.Slowed(500*time.Millisecond))); return err })
		redistest.Eventually(t, 5*time.Second, "a caller to wait", waitsOf(ses, m))
		must(t, inner.Unlock())
		must(t, outer.Unlock())
		must(t, innermost.Unlock())
		locktest.Is(t, "the Lock that waits", locktest.Get(t, waiter, 5*time.Second, "it"), rlock.ErrNotAcquired)
		if left := locktest.PTTL(t, s, "x"); left < time.Second || left > 10*time.Second {
			t.Errorf("the lock stands for %v yet, want what is left of 10s", left)
		}
	})
}

// A downgrade before the time is over lets no reader in: the write side stands until then.
func TestAtLeastOfTheWriteSideOutlivesADowngrade(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m, elsewhere := rwlock.New(dial(t, s, rlock.Config{}), "x"), rwlock.New(dial(t, s, rlock.Config{}), "x")
		section, w, err := m.Lock(ctx, rlock.AtLeast(20*time.Second))
		must(t, err)
		_, r, err := m.RLock(section)
		must(t, err)
		must(t, w.Unlock())
		_, _, err = elsewhere.TryRLock(ctx)
		locktest.Is(t, "TryRLock elsewhere", err, rlock.ErrNotAcquired)
		_, _, err = m.TryRLock(ctx)
		locktest.Is(t, "TryRLock of the session", err, rlock.ErrNotAcquired)
		must(t, r.Unlock())
		if left := locktest.PTTL(t, s, "x"); left < 5*time.Second || left > 20*time.Second {
			t.Errorf("the lock stands for %v yet, want what is left of 20s", left)
		}
		_, _, err = elsewhere.TryRLock(ctx)
		locktest.Is(t, "TryRLock elsewhere", err, rlock.ErrNotAcquired)
	})
}

// An owner with a name gets in again, and holds of it elsewhere are not cut short.
func TestAtLeastOfANamedOwner(t *testing.T) {
	eachAtLeast(t, func(t *testing.T, s *redistest.Server, ctx context.Context, _ *rlock.Session, m, elsewhere locktest.Mutex) {
		ctx = rlock.WithOwner(ctx, "job")
		_, h, err := m.Lock(ctx, rlock.AtLeast(5*time.Second))
		must(t, err)
		_, other, err := elsewhere.Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		if left := locktest.PTTL(t, s, "x"); left < 15*time.Second {
			t.Errorf("the hold in the other session ends in %v, want a lease of 30s", left)
		}
		must(t, other.Unlock())
		_, _, err = elsewhere.TryLock(rlock.WithOwner(ctx, "another"))
		locktest.Is(t, "TryLock of another owner", err, rlock.ErrNotAcquired)
	})
}

// What AtLeast is not for says so, and changes nothing.
func TestAtLeastRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, rlock.Config{}), within(t, 10*time.Second)
		m, rw := rlock.New(ses, "x"), rwlock.New(ses, "y")
		for name, lock := range map[string]func() error{
			"too short": func() error { _, _, err := m.Lock(ctx, rlock.AtLeast(time.Microsecond)); return err },
			"negative":  func() error { _, _, err := m.TryLock(ctx, rlock.AtLeast(-time.Second)); return err },
			"over lease": func() error {
				_, _, err := m.Lock(ctx, rlock.Lease(time.Second), rlock.AtLeast(2*time.Second))
				return err
			},
			"read side": func() error { _, _, err := rw.RLock(ctx, rlock.AtLeast(time.Second)); return err },
			"permits": func() error {
				_, _, err := semaphore.New(ses, "z", 1).Acquire(ctx, 1, rlock.AtLeast(time.Second))
				return err
			},
			"counter": func() error { return semaphore.NewCounter(ses, "c").Acquire(ctx, 1, rlock.AtLeast(time.Second)) },
		} {
			locktest.Is(t, name, lock(), rlock.ErrArgument)
		}
		if n, err := s.Do(t, "DBSIZE").AsInt64(); err != nil || n > 1 { // the session's record
			t.Errorf("%d keys, %v", n, err)
		}
	})
}

// The reply to an Unlock that leaves the lock standing is lost: it runs twice, and the lock stands as long as it should.
func TestAtLeastWhenTheReplyIsLost(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		_, h, err := st.Mutex.Lock(st.Ctx, rlock.AtLeast(10*time.Second))
		must(t, err)
		st.Proxy.DropReply(locktest.Calls(t, "leave"))
		must(t, h.Unlock())
		if left := locktest.PTTL(t, s, st.Name); left < time.Second || left > 10*time.Second {
			t.Errorf("the lock stands for %v yet, want what is left of 10s", left)
		}
	})
}
