package fault_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// operations are all that ask Redis, each once, on names that nobody else uses.
func operations(ses *rlock.Session, name string) map[string]func(ctx context.Context) error {
	m, f, rw := rlock.New(ses, name), fairlock.New(ses, name+"-fair"), rwlock.New(ses, name+"-rw")
	sem, c := semaphore.New(ses, name+"-sem", 2), semaphore.NewCounter(ses, name+"-counter")
	return map[string]func(ctx context.Context) error{
		"TryLock":      func(ctx context.Context) error { _, _, err := m.TryLock(ctx); return err },
		"Wait(0)":      func(ctx context.Context) error { _, _, err := m.Lock(ctx, rlock.Wait(0)); return err },
		"State":        func(ctx context.Context) error { _, err := m.State(ctx); return err },
		"ForceUnlock":  func(ctx context.Context) error { _, err := m.ForceUnlock(ctx); return err },
		"fair TryLock": func(ctx context.Context) error { _, _, err := f.TryLock(ctx); return err },
		"Waiters":      func(ctx context.Context) error { _, err := f.Waiters(ctx); return err },
		"TryRLock":     func(ctx context.Context) error { _, _, err := rw.TryRLock(ctx); return err },
		"rw State":     func(ctx context.Context) error { _, err := rw.State(ctx); return err },
		"TryAcquire":   func(ctx context.Context) error { _, _, err := sem.TryAcquire(ctx, 1); return err },
		"SetLimit":     func(ctx context.Context) error { return sem.SetLimit(ctx, 3) },
		"Limit":        func(ctx context.Context) error { _, err := sem.Limit(ctx); return err },
		"Available":    func(ctx context.Context) error { _, err := c.Available(ctx); return err },
		"TrySet":       func(ctx context.Context) error { _, err := c.TrySet(ctx, 1); return err },
		"Release":      func(ctx context.Context) error { return c.Release(ctx, 1) },
		"Drain":        func(ctx context.Context) error { _, err := c.Drain(ctx); return err },
		"counter try":  func(ctx context.Context) error { return c.TryAcquire(ctx, 1) },
	}
}

// together runs calls side by side, since most of them take as long as they may.
func together(ctx context.Context, calls map[string]func(ctx context.Context) error, judge func(what string, err error)) {
	var all sync.WaitGroup
	for what, call := range calls {
		all.Go(func() { judge(what, call(ctx)) })
	}
	all.Wait()
}

// withHold adds what can be done with a hold.
func withHold(t *testing.T, ses *rlock.Session, name string, calls map[string]func(ctx context.Context) error) {
	t.Helper()
	_, a, err := rlock.New(ses, name+"extend").Lock(context.Background(), rlock.Lease(time.Minute))
	must(t, err)
	_, b, err := rlock.New(ses, name+"unlock").Lock(context.Background())
	must(t, err)
	calls["Extend"] = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		return a.Extend(ctx, time.Minute)
	}
	calls["Unlock"] = func(context.Context) error { return b.Unlock() }
}

// Every operation says that it was Redis that could not serve, by whatever reply, and shows it.
func TestUnavailableByReply(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 500 * time.Millisecond})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		for _, text := range []string{
			"LOADING Redis is loading", "READONLY You can't write", "MASTERDOWN Link with MASTER is down",
			"CLUSTERDOWN The cluster is down", "NOREPLICAS Not enough good replicas", "TRYAGAIN Multiple keys",
			"BUSY Redis is busy", "MISCONF Redis is configured to save", "OOM command not allowed",
			"NOPERM this user has no permissions", "NOAUTH Authentication required.",
			"ERR The user executing the script can't run this command or subcommand",
			"ERR ACL failure in script: User u has no permissions to run the 'incrby' command",
			"ERR Script attempted to access a non local key in a cluster node script: f_1, on @user_script:5.",
			"ERR Error running script (call to f_1): @user_script:5: @user_script: 5: -OOM command not allowed",
		} {
			calls := operations(ses, name)
			withHold(t, ses, name+text[:6], calls)
			p.RefuseCommand("EVALSHA", text)
			together(ctx, calls, func(what string, err error) {
				says := err != nil && strings.Contains(err.Error(), strings.TrimPrefix(text, "ERR "))
				if !s.IsMini() && err != nil && strings.Contains(err.Error(), net.ErrClosed.Error()) {
					says = true // the last attempt met the end of a connection, which the answer had the session leave
				}
				if !errors.Is(err, rlock.ErrUnavailable) || errors.Is(err, rlock.ErrNotAcquired) || !says {
					t.Errorf("%s, %s: %v", what, text, err)
				}
			})
			p.RefuseCommand("EVALSHA", "")
		}
		// What concerns the key alone is no outage.
		p.RefuseCommand("EVALSHA", "WRONGTYPE Operation against a key")
		together(ctx, operations(ses, name), func(what string, err error) {
			if err == nil || errors.Is(err, rlock.ErrUnavailable) {
				t.Errorf("%s, WRONGTYPE: %v", what, err)
			}
		})
	})
}

// Without an answer the same: nothing comes back, or nothing listens.
func TestUnavailableWithoutAnswer(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for how, fail := range gone {
			ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 300 * time.Millisecond})
			ctx := within(t, 60*time.Second)
			name := redistest.Name(t) + how
			calls := operations(ses, name)
			withHold(t, ses, name, calls)
			fail(p)
			together(ctx, calls, func(what string, err error) {
				if !errors.Is(err, rlock.ErrUnavailable) || errors.Is(err, rlock.ErrNotAcquired) {
					t.Errorf("%s, %s: %v", how, what, err)
				}
			})
			short, cancel := context.WithTimeout(ctx, s.Slowed(150*time.Millisecond))
			together(short, operations(ses, name), func(what string, err error) {
				if !errors.Is(err, rlock.ErrUnavailable) {
					t.Errorf("%s, %s with a deadline: %v", how, what, err)
				}
			})
			cancel()
			_, _, err := rlock.New(ses, name).Lock(ctx, rlock.Wait(50*time.Millisecond))
			locktest.Is(t, "Lock with Wait", err, rlock.ErrUnavailable, rlock.ErrNotAcquired)
		}
	})
}

// Contention is never an outage, also if the waiters come and go.
func TestContentionIsNotUnavailable(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		j := new(locktest.Journal)
		holder, ses := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{Logger: j.Logger(), PollFloor: time.Millisecond})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		_, _, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		m := rlock.New(ses, name)
		stalls := locktest.WatchStalls(t)
		var unavailable atomic.Int64
		var waiters sync.WaitGroup
		for i := range 40 {
			waiters.Go(func() {
				short, cancel := context.WithTimeout(ctx, 500*time.Millisecond+time.Duration(i)*100*time.Microsecond)
				_, _, err := m.Lock(short)
				cancel()
				_, _, tried := m.TryLock(ctx)
				for _, err := range []error{err, tried} {
					if errors.Is(err, rlock.ErrUnavailable) {
						unavailable.Add(1)
					} else if !errors.Is(err, rlock.ErrNotAcquired) {
						t.Errorf("%v", err)
					}
				}
			})
		}
		waiters.Wait()
		must(t, ses.Close())
		// An answer after 100 ms counts as none. A busy machine can bring that about, which then stalls
		// elsewhere too; the made-up clock never does.
		n, logged := unavailable.Load(), j.Count("cannot serve")
		if (n != 0 || logged != 0) && stalls.Longest() < 5*time.Millisecond {
			t.Errorf("%d calls found Redis unavailable, logged %d outages", n, logged)
		}
	})
}

// While Locks wait through an outage the log has one line for its beginning and one for its
// end, and none for an attempt.
func TestOutageIsLoggedOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		j := new(locktest.Journal)
		trace, failed := locktest.Failed()
		ses, p := locktest.DialProxy(t, s, rlock.Config{Logger: j.Logger(), Trace: trace})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		for round := 1; round <= 2; round++ {
			p.RefuseCommand("EVALSHA", "OOM command not allowed when used memory > 'maxmemory'.")
			locks := []<-chan locktest.Locked{}
			for _, n := range []string{"a", "b", "c"} {
				locks = append(locks, locktest.GoLock(rlock.New(ses, name+n), ctx))
			}
			for range 12 {
				locktest.Get(t, failed, 10*time.Second, "a failed attempt")
			}
			if n := j.Count("cannot serve"); n != round {
				t.Errorf("round %d: the beginning was logged %d times: %q", round, n, j.Lines)
			}
			p.RefuseCommand("EVALSHA", "")
			for _, l := range locks {
				got := locktest.Get(t, l, 10*time.Second, "Lock")
				must(t, got.Err)
				must(t, got.Hold.Unlock())
			}
			redistest.Eventually(t, 5*time.Second, "the end is logged", func() bool { return j.Count("serves again") == round })
			for len(failed) > 0 {
				<-failed
			}
		}
		lines := slices.DeleteFunc(slices.Clone(j.Lines), func(l string) bool { return !strings.Contains(l, "serve") })
		if len(lines) != 4 || !strings.Contains(lines[0], "OOM") || !strings.Contains(lines[1], "after=") {
			t.Errorf("logged: %q", lines)
		}
	})
}

// A real server that is out of memory, or lacks replicas: a Lock waits until that is over.
func TestLockWaitsThroughARealOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ses := dial(t, s, rlock.Config{})
	for _, set := range [][3]string{{"maxmemory", "1", "0"}, {"min-replicas-to-write", "1", "0"}} {
		m := rlock.New(ses, redistest.Name(t))
		must(t, s.Do(t, "CONFIG", "SET", set[0], set[1]).Error())
		_, _, err := m.TryLock(context.Background())
		locktest.Is(t, "TryLock", err, rlock.ErrUnavailable)
		locked := locktest.GoLock(m, within(t, 20*time.Second))
		must(t, s.Do(t, "CONFIG", "SET", set[0], set[2]).Error())
		got := locktest.Get(t, locked, 10*time.Second, "Lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	}
}
