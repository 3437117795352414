package claim_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// However many names a session uses, one after the other or at the same time, it remembers few of them.
// They do not count as locks that it has to do with.
func TestIdleLocksAreFew(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, name, ctx := dial(t, s, rlock.Config{}), redistest.Name(t), within(t, time.Minute)
		const kept = 20
		locktest.Keep(ses, kept)
		lock := func(i int) *rlock.Hold {
			_, h, err := rlock.New(ses, name+strconv.Itoa(i)).Lock(ctx)
			must(t, err)
			return h
		}
		for i := range kept + 50 {
			must(t, lock(i).Unlock())
		}
		if n := locktest.Records(ses); n != kept {
			t.Errorf("%d locks are remembered after one pair each, want %d", n, kept)
		}
		var holds []*rlock.Hold
		for i := range 100 {
			holds = append(holds, lock(-1-i))
		}
		if n := locktest.Records(ses); n != kept+100 {
			t.Errorf("%d locks are known while 100 more are held, want %d", n, kept+100)
		}
		for _, h := range holds {
			must(t, h.Unlock())
		}
		if n := locktest.Records(ses); n != kept {
			t.Errorf("%d locks are remembered at the end, want %d", n, kept)
		}
		if held, asking, locks, scheduled, active := locktest.Books(ses); held+asking+locks+scheduled+active != 0 {
			t.Errorf("idle locks count as used: %d %d %d %d %d", held, asking, locks, scheduled, active)
		}
	})
}

// A lock that was left to other sessions, and has been idle since, is theirs no longer than before: the
// next Lock asks at once.
func TestAnIdleLockForgets(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, name := dial(t, s, rlock.Config{}), redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(within(t, 10*time.Second))
		must(t, err)
		locktest.LeaveToOthers(ses, name, time.Hour)
		must(t, h.Unlock())
		_, h, err = rlock.New(ses, name).Lock(within(t, 10*time.Second))
		must(t, err)
		must(t, h.Unlock())
	})
}

// The Unlock of a fair lock that was lost changes nothing of what its session knows of the lock since,
// be it nothing or the next section.
func TestALateUnlockLeavesTheNextAlone(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, name, ctx := dial(t, s, rlock.Config{}), redistest.Name(t), within(t, 30*time.Second)
		m := fairlock.New(ses, name)
		for _, idle := range []bool{true, false} {
			lost, old, err := m.Lock(ctx, rlock.Lease(200*time.Millisecond))
			must(t, err)
			<-lost.Done()
			if idle {
				locktest.Is(t, "Unlock", old.Unlock(), rlock.ErrLost)
			}
			section, h, err := m.Lock(ctx)
			must(t, err)
			if !idle {
				locktest.Is(t, "Unlock", old.Unlock(), rlock.ErrLost)
			}
			if section.Err() != nil {
				t.Errorf("the next section ended: %v", context.Cause(section))
			}
			must(t, h.Unlock())
		}
	})
}

// Between two attempts of a TryLock its session knows of it, also when the callers have left that it did
// not want to overtake: Close ends what it gets then.
func TestATryLockThatSleepsIsKnown(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, name, ctx := dial(t, s, rlock.Config{}), redistest.Name(t), within(t, 30*time.Second)
		locktest.Keep(ses, 0) // the callers that leave do not leave it known
		_, other, err := fairlock.New(dial(t, s, rlock.Config{}), name).Lock(ctx)
		must(t, err)
		waiter, cancel := context.WithCancel(ctx)
		left := locktest.Go(func() error {
			_, _, err := fairlock.New(ses, name).Lock(waiter)
			return err
		})
		redistest.Eventually(t, 5*time.Second, "a caller to wait", func() bool { return locktest.FairWaitersOf(ses, name) == 1 })
		section, _, err := fairlock.New(ses, name).TryLock(ctx, rlock.Retry(func(n int) time.Duration {
			if n == 1 {
				cancel()
				locktest.Is(t, "Lock", locktest.Get(t, left, 5*time.Second, "the caller that waits"), context.Canceled)
				must(t, other.Unlock())
			}
			return 10 * time.Millisecond
		}))
		must(t, err)
		must(t, ses.Close())
		locktest.Is(t, "the section", context.Cause(section), rlock.ErrClosed)
	})
}
