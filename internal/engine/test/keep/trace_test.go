package keep_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// The hooks hear of each lock that is kept when that begins, and once how it ends, and of each time that it is asked for.
func TestKeptLocksAreTraced(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		events := make(chan locktrace.Kept, 1000)
		ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{Kept: func(e locktrace.Kept) { events <- e }}})
		other, ctx := dial(t, s, rlock.Config{}), within(t, time.Minute)
		locked := func(m *rlock.Mutex, opts ...rlock.LockOption) (owner string) {
			t.Helper()
			_, h, err := m.Lock(ctx, opts...)
			must(t, err)
			must(t, h.Unlock())
			return h.Owner()
		}
		told := func(name, owner string, whats ...locktrace.KeptEvent) {
			t.Helper()
			for _, what := range whats {
				want := locktrace.Kept{Name: name, Kind: "mutex", Owner: owner, What: what}
				if e := locktest.Get(t, events, 10*time.Second, string(what)); e != want {
					t.Fatalf("the hooks heard %+v, want %+v", e, want)
				}
			}
		}
		keep := rlock.Keep(15 * time.Second)

		m := rlock.New(ses, "asked back", keep)
		owner := locked(m)
		told("asked back", owner, locktrace.KeptBegins)
		locked(m)
		told("asked back", owner, locktrace.KeptReused, locktrace.KeptBegins)
		locked(rlock.New(other, "asked back"))
		told("asked back", owner, locktrace.KeptWanted, locktrace.KeptGivenBack)

		m = rlock.New(ses, "in use", keep)
		_, h, err := m.Lock(ctx)
		must(t, err)
		_, _, err = rlock.New(other, "in use").TryLock(ctx)
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		told("in use", h.Owner(), locktrace.KeptWanted)
		must(t, h.Unlock()) // which keeps nothing

		m = rlock.New(ses, "over", rlock.Keep(20*time.Millisecond))
		told("over", locked(m), locktrace.KeptBegins, locktrace.KeptOver)

		m = rlock.New(ses, "unfit", keep)
		told("unfit", locked(m), locktrace.KeptBegins)
		locked(m, rlock.Lease(time.Minute))
		if e := locktest.Get(t, events, 10*time.Second, "its end"); e.What != locktrace.KeptOver || e.Name != "unfit" {
			t.Errorf("the hooks heard %+v", e)
		}

		m = rlock.New(ses, "forced", keep)
		owner = locked(m)
		told("forced", owner, locktrace.KeptBegins)
		found, err := rlock.New(other, "forced").ForceUnlock(ctx)
		if err != nil || !found {
			t.Fatalf("ForceUnlock: %v, %v", found, err)
		}
		told("forced", owner, locktrace.KeptOver)

		m = rlock.New(ses, "closed", keep)
		owner = locked(m)
		told("closed", owner, locktrace.KeptBegins)
		must(t, ses.Close())
		told("closed", owner, locktrace.KeptOver)
		if n := len(events); n > 0 {
			t.Errorf("%d events more, the first %+v", n, <-events)
		}
	})
}

// Waiters counts those that wait for a kept lock, which nobody has to be inside of; and a Shutdown gives the lock to
// them.
func TestShutdownGivesAKeptLockToWhoWaits(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		other, ctx, name := dial(t, s, rlock.Config{}), within(t, time.Minute), redistest.Name(t)
		_, h, err := rlock.New(ses, name, rlock.Keep(15*time.Second)).Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		p.DropMessages(true) // the session does not hear that it is asked
		m := rlock.New(other, name)
		waiter := locktest.GoLock(m, ctx)
		redistest.Eventually(t, 10*time.Second, "one caller to wait", func() bool {
			n, err := m.Waiters(context.Background())
			return err == nil && n == 1
		})
		began := time.Now()
		must(t, ses.Shutdown(ctx))
		got := locktest.Get(t, waiter, 10*time.Second, "the lock")
		must(t, got.Err)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if n, err := m.Waiters(ctx); n != 0 || err != nil {
			t.Errorf("%d waiters, %v", n, err)
		}
		must(t, got.Hold.Unlock())
	})
}
