package fault_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R30: a key of another type. Redis says so at once; nothing is changed, nothing of
// ours is matched.
func TestFaultKeyOfAnotherTypeEndsLockAtOnce(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		must(t, s.Do(t, "SET", name, "something else").Error())
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			for _, m := range []*rlock.Mutex{rlock.New(ses, name), rlock.New(ses, name, rlock.Fenced())} {
				_, _, err1 := m.Lock(lockCtx)
				_, _, err2 := m.TryLock(lockCtx)
				err3 := m.Do(lockCtx, func(context.Context) error { t.Error("Do ran fn"); return nil })
				_, err4 := m.State(lockCtx)
				_, err5 := m.ForceUnlock(lockCtx)
				for i, err := range []error{err1, err2, err3, err4, err5} {
					what := []string{"Lock", "TryLock", "Do", "State", "ForceUnlock"}[i]
					faultNoSentinel(t, what, err)
					if !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), name) {
						t.Errorf("%s: %q names neither the type nor the lock", what, err)
					}
				}
			}
		}
		if ctx.Err() != nil {
			t.Error("they waited for ctx's end")
		}
		if v, err := s.Do(t, "GET", name).ToString(); err != nil || v != "something else" {
			t.Errorf("the key is now %q (%v)", v, err)
		}
		if keys := s.Keys(t); len(keys) != 1 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// A permission that is missing does not come back by asking again.
func TestFaultMissingPermissionEndsLockAtOnce(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: 300 * time.Millisecond, Trace: trace})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		refuse := func(on bool) {
			text := ""
			if on {
				text = "NOPERM this user has no permissions to run the command"
			}
			p.RefuseCommand("EVALSHA", text)
			p.RefuseCommand("EVAL", text)
		}
		check := func(what string, err error) {
			t.Helper()
			faultNoSentinel(t, what, err)
			if !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s: %q does not say why", what, err)
			}
		}
		m := rlock.New(ses, name)
		refuse(true)
		_, _, err := m.Lock(ctx)
		check("Lock", err)
		_, _, err = m.TryLock(rlock.WithOwner(ctx, "order-17"))
		check("TryLock", err)
		refuse(false)

		// Also for one that waits already: it finds out when it looks again.
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		next := locktest.GoLock(m, ctx)
		locktest.Get(t, waiting, 5*time.Second, "the waiter waits")
		refuse(true)
		check("the waiter's Lock", locktest.Get(t, next, 5*time.Second, "the waiter's Lock").Err)
		refuse(false)
		must(t, h.Unlock())

		// A release that is refused is reported too, and is not made up for.
		_, h, err = m.Lock(ctx)
		must(t, err)
		refuse(true)
		check("Unlock", h.Unlock())
		refuse(false)
	})
}

// Errors that pass by themselves: a server that loads, a Cluster in motion.
func TestFaultTransientErrorsAreWaitedFor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		trace, failed := locktest.Failed()
		ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: trace})
		ctx := within(t, 60*time.Second)
		for _, text := range []string{
			"LOADING Redis is loading the dataset in memory",
			"CLUSTERDOWN The cluster is down",
			"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
			"READONLY You can't write against a read only replica.",
			"TRYAGAIN Multiple keys request during rehashing of slot",
			"NOREPLICAS Not enough good replicas to write.",
			"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		} {
			for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
				name := redistest.Name(t)
				m := rlock.New(ses, name)
				for len(failed) > 0 {
					<-failed
				}
				p.RefuseCommand("EVALSHA", text)
				next := locktest.GoLock(m, lockCtx)
				for range 3 {
					locktest.Get(t, failed, 10*time.Second, "a failed attempt")
				}
				// TryLock does not wait, and says why.
				_, _, err := m.TryLock(ctx)
				if faultNoSentinel(t, "TryLock", err); !strings.Contains(err.Error(), text) {
					t.Errorf("TryLock: %q does not show %q", err, text)
				}
				p.RefuseCommand("EVALSHA", "")
				got := locktest.Get(t, next, 10*time.Second, "Lock")
				must(t, got.Err)
				if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" {
					t.Fatalf("%s: count %q", text, n)
				}
				// A release waits for the server as well.
				p.RefuseCommand("EVALSHA", text)
				unlocked := locktest.Go(got.Hold.Unlock)
				locktest.Stays(t, ctx, 50*time.Millisecond)
				p.RefuseCommand("EVALSHA", "")
				must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
				if !locktest.Free(t, s, name) {
					t.Fatalf("%s: not free", text)
				}
			}
		}
	})
}

// Redis is down while Lock waits: when ctx ends the error tells that, and that it was
// Redis, not somebody else's lock.
func faultDown(t *testing.T, wait bool, down func(s *redistest.Server)) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		if down != nil {
			down(s)
		} else {
			p.Refuse(true)
		}
		var errs []error
		for range 5 {
			var err error
			from := time.Now()
			if wait {
				_, _, err = m.Lock(context.Background(), rlock.Wait(300*time.Millisecond))
			} else {
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				_, _, err = m.Lock(ctx)
				locktest.Is(t, "Lock", err, context.DeadlineExceeded)
			}
			if d := time.Since(from); d > 300*time.Millisecond+s.Slack() {
				t.Errorf("Lock took %v", d)
			}
			locktest.Is(t, "Lock", err, rlock.ErrNotAcquired)
			errs = append(errs, err)
		}
		for _, err := range errs {
			if !strings.Contains(err.Error(), "last attempt") {
				t.Errorf("%q does not show the client's error", err)
			}
		}
		_, _, err := m.TryLock(within(t, 10*time.Second))
		faultNoSentinel(t, "TryLock", err)

		if down != nil {
			s.Restart(t)
		} else {
			p.Refuse(false)
		}
		_, h, err := m.Lock(within(t, 20*time.Second))
		must(t, err)
		must(t, h.Unlock())
	})
}

func TestFaultRefusedConnectionShowsWhenTheDeadlineIsOver(t *testing.T) { faultDown(t, false, nil) }

func TestFaultRefusedConnectionShowsWhenWaitIsOver(t *testing.T) { faultDown(t, true, nil) }

func TestFaultDeadServerShowsWhenTheDeadlineIsOver(t *testing.T) {
	faultDown(t, false, (*redistest.Server).Kill)
}
