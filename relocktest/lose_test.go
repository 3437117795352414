package relocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"relock/election"
	"relock/multilock"
	"relock/relocktest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// lost checks that a section ends with ErrLost, and so does what ends its hold.
func lost(t testing.TB, what string, ctx context.Context, release func() error) {
	t.Helper()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, rlock.ErrLost) {
		t.Errorf("%s: the cause is %v, want ErrLost", what, cause)
	}
	if err := release(); !errors.Is(err, rlock.ErrLost) {
		t.Errorf("%s: its release: %v, want ErrLost", what, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLoseLeadership(t *testing.T) {
	r := relocktest.Start(t)
	a, b := election.New(r.Session(t, rlock.Config{Prefix: "app:"}), "x"), election.New(r.Session(t, rlock.Config{Prefix: "app:"}), "x")
	ctx, l, err := a.Campaign(t.Context(), "a")
	must(t, err)
	ended, led := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- b.Run(t.Context(), "b", election.Callbacks{OnStartedLeading: func(context.Context) { close(led) }})
	}()
	r.AwaitWaiters(t, "x", 1)
	r.LoseLeadership(t, a)
	lost(t, "a leadership", ctx, l.Resign)
	<-led
	r.LoseLeadership(t, a) // through any handle
	if err := <-ended; !errors.Is(err, rlock.ErrLost) {
		t.Errorf("Run: %v, want ErrLost", err)
	}
}

func TestLosePermits(t *testing.T) {
	const limit = semaphore.MaxAtOnce + 10 // more than one ReleaseByID is for
	synctest.Test(t, func(t *testing.T) {
		r := relocktest.Start(t)
		s := r.Session(t, rlock.Config{Prefix: "app:"})
		m := semaphore.New(s, "x", limit)
		first, p, err := m.Acquire(t.Context(), 3)
		must(t, err)
		second, q, err := m.Acquire(t.Context(), semaphore.MaxAtOnce-1)
		must(t, err)
		_, f, err := m.Acquire(t.Context(), 1, rlock.Lease(time.Hour))
		must(t, err)
		r.LosePermits(t, m)
		n, err := m.Available(t.Context())
		must(t, err)
		if n != limit {
			t.Errorf("%d permits are free, want all %d", n, limit)
		}
		began := time.Now()
		lost(t, "some permits", first, p.Release)
		lost(t, "many permits", second, q.Release)
		if took := time.Since(began); took > rlock.DefaultLease/3 {
			t.Errorf("the holders were told after %v", took)
		}
		if err := f.Release(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("a fixed lease: Release: %v", err)
		}
	})
}

func TestLoseAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := relocktest.Start(t)
		s := r.Session(t, rlock.Config{})
		m, rw, sem := rlock.New(s, "m"), rwlock.New(s, "rw"), semaphore.New(s, "sem", 5)
		for what, parts := range map[string][]multilock.Part{
			"mutexes":                 {m, rlock.New(s, "n")},
			"both sides, and permits": {m, rw, multilock.Read(rw), multilock.Permits(sem, 2)},
			"read":                    {multilock.Read(rw)},
			"permits":                 {multilock.Permits(sem, 5)},
		} {
			all := multilock.New(parts...)
			ctx, h, err := all.Lock(t.Context())
			must(t, err)
			r.LoseAll(t, all)
			lost(t, what, ctx, h.Unlock)
			_, h, err = all.TryLock(t.Context())
			must(t, err)
			must(t, h.Unlock())
		}
	})
}

// failing runs fn as a test, and returns whether it was ended by Fatal.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper() {}

func (f *failing) Fatal(...any)          { f.failed = true; panic(f) }
func (f *failing) Fatalf(string, ...any) { f.failed = true; panic(f) }

// What is not held cannot be lost: the test is told.
func TestLoseWhatIsNotHeld(t *testing.T) {
	r := relocktest.Start(t)
	s := r.Session(t, rlock.Config{})
	m, n := rlock.New(s, "m"), rlock.New(s, "n")
	_, h, err := m.Lock(t.Context())
	must(t, err)
	defer h.Unlock()
	for what, lose := range map[string]func(tb testing.TB){
		"leadership":        func(tb testing.TB) { r.LoseLeadership(tb, election.New(s, "x")) },
		"permits":           func(tb testing.TB) { r.LosePermits(tb, semaphore.New(s, "s", 1)) },
		"one of a multi":    func(tb testing.TB) { r.LoseAll(tb, multilock.New(m, n)) },
		"nil":               func(tb testing.TB) { r.LoseLeadership(tb, nil) },
		"a nil semaphore":   func(tb testing.TB) { r.LosePermits(tb, nil) },
		"an empty multi":    func(tb testing.TB) { r.LoseAll(tb, multilock.New()) },
		"a nil multi":       func(tb testing.TB) { r.LoseAll(tb, nil) },
		"of no session":     func(tb testing.TB) { r.LoseLeadership(tb, election.New(nil, "x")) },
		"sem of no session": func(tb testing.TB) { r.LosePermits(tb, semaphore.New(nil, "x", 1)) },
	} {
		f := &failing{TB: t}
		func() {
			defer func() {
				if r := recover(); r != nil && r != any(f) {
					panic(r)
				}
			}()
			lose(f)
		}()
		if !f.failed {
			t.Errorf("%s: the test goes on", what)
		}
	}
}
