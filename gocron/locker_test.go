package gocron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	relockgocron "relock/gocron"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The lock of a job has the job's name behind the prefixes, and lasts until it is unlocked, whatever
// becomes of the context of the job; then for the rest of AtLeast.
func TestLocker(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(300 * time.Millisecond)
		ses := locktest.Dial(t, s, rlock.Config{Prefix: "app:", Lease: lease})
		m := rlock.New(locktest.Dial(t, s, rlock.Config{Prefix: "app:"}), "cron:report")
		ctx, cancel := context.WithCancel(locktest.Within(t, time.Minute))
		locker := relockgocron.NewLocker(ses, relockgocron.Prefix("cron:"), relockgocron.AtLeast(20*time.Millisecond))
		lock, err := locker.Lock(rlock.WithOwner(ctx, "all hosts"), "report")
		must(t, err)
		if _, err := locker.Lock(rlock.WithOwner(ctx, "all hosts"), "report"); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("a second Lock: %v", err)
		}
		cancel()
		time.Sleep(3 * lease) // renewed meanwhile
		st, err := m.State(locktest.Within(t, time.Minute))
		must(t, err)
		if len(st.Owners) != 1 {
			t.Errorf("while the job runs the lock is held by %v", st.Owners)
		}
		must(t, lock.Unlock(ctx))
		if _, err := locker.Lock(ctx, "report"); !errors.Is(err, context.Canceled) {
			t.Errorf("in a context that has ended: %v", err)
		}

		ctx = locktest.Within(t, time.Minute)
		long := relockgocron.NewLocker(ses, relockgocron.AtLeast(time.Hour), relockgocron.AtMost(2*time.Hour))
		lock, err = long.Lock(ctx, "daily")
		must(t, err)
		must(t, lock.Unlock(ctx))
		if _, err := long.Lock(ctx, "daily"); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("within AtLeast: %v", err)
		}
		lock, err = relockgocron.NewLocker(ses, relockgocron.AtMost(relockgocron.DefaultAtLeast)).Lock(ctx, "short")
		must(t, err)
		redistest.Eventually(t, time.Minute, "AtMost to be over", func() bool {
			st, err := rlock.New(ses, "short").State(ctx)
			must(t, err)
			return len(st.Owners) == 0
		})
		if err := lock.Unlock(ctx); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock behind AtMost: %v", err)
		}
	})
}

// What is wrong is said by each Lock, and nothing is taken.
func TestBadInput(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := locktest.Dial(t, s, rlock.Config{})
		ctx := locktest.Within(t, time.Minute)
		for what, c := range map[string]struct {
			locker gocron.Locker
			job    string
			want   error
		}{
			"no session":           {relockgocron.NewLocker(nil), "x", rlock.ErrArgument},
			"a nil option":         {relockgocron.NewLocker(ses, nil), "x", rlock.ErrArgument},
			"AtLeast of 0":         {relockgocron.NewLocker(ses, relockgocron.AtLeast(0)), "x", rlock.ErrArgument},
			"AtMost below AtLeast": {relockgocron.NewLocker(ses, relockgocron.AtMost(time.Millisecond)), "x", rlock.ErrArgument},
			"a job without a name": {relockgocron.NewLocker(ses), "", rlock.ErrName},
		} {
			if lock, err := c.locker.Lock(ctx, c.job); !errors.Is(err, c.want) || lock != nil {
				t.Errorf("%s: %v, %v", what, lock, err)
			}
		}
		if st, err := rlock.New(ses, "x").State(ctx); err != nil || len(st.Owners) != 0 {
			t.Errorf("held by %v, %v", st.Owners, err)
		}
		locker := relockgocron.NewLocker(ses)
		must(t, ses.Close())
		if _, err := locker.Lock(ctx, "x"); !errors.Is(err, rlock.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// While Redis does not answer jobs are skipped, and their hook is told.
func TestRedisIsAway(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, proxy := locktest.DialProxy(t, s, rlock.Config{})
		proxy.BlackHole(true)
		told := make(chan error, 100)
		sched, err := gocron.NewScheduler(gocron.WithDistributedLocker(relockgocron.NewLocker(ses)))
		must(t, err)
		_, err = sched.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() { t.Error("it is run") }),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { told <- err })))
		must(t, err)
		sched.Start()
		if err := locktest.Get(t, told, time.Minute, "the hook to be told"); !errors.Is(err, rlock.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		must(t, sched.Shutdown())
	})
}
