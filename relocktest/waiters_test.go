package relocktest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"relock/fairlock"
	"relock/locktrace"
	"relock/relocktest"
	"relock/rlock"
	"relock/semaphore"
)

func TestAwaitWaitersCountsAllSessionsAndKinds(t *testing.T) {
	r := relocktest.Start(t)
	a, b := r.Session(t, rlock.Config{}), r.Session(t, rlock.Config{})
	_, m, err := rlock.New(a, "m").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, f, err := fairlock.New(a, "f").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, s, err := semaphore.New(a, "s", 1).Acquire(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	run := func(context.Context) error { return nil }
	done := make(chan error)
	for _, ses := range []*rlock.Session{a, b} {
		go func() { done <- rlock.New(ses, "m").Do(t.Context(), run) }()
		go func() { done <- fairlock.New(ses, "f").Do(t.Context(), run) }()
		go func() { done <- semaphore.New(ses, "s", 1).Do(t.Context(), 1, run) }()
	}
	for _, name := range []string{"m", "f", "s"} {
		r.AwaitWaiters(t, name, 2)
		if n := r.Waiters(name); n != 2 {
			t.Errorf("%d callers wait for %s, want 2", n, name)
		}
	}
	if err := errors.Join(m.Unlock(), f.Unlock(), s.Release()); err != nil {
		t.Error(err)
	}
	for range 6 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"m", "f", "s", "never used"} {
		if n := r.Waiters(name); n != 0 {
			t.Errorf("%d callers wait for %s after all have got it", n, name)
		}
	}
}

// A caller that gives up does not count any longer, and hooks of the test's own are called too.
func TestWaitersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := relocktest.Start(t)
		waiting, ended := 0, 0
		s := r.Session(t, rlock.Config{Trace: &rlock.Trace{
			Waiting:    func(context.Context, locktrace.Waiting) { waiting++ },
			AcquireEnd: func(context.Context, locktrace.AcquireEnd) { ended++ },
		}})
		m := rlock.New(s, "job")
		_, h, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() {
			_, _, err := m.Lock(ctx)
			gaveUp <- err
		}()
		r.AwaitWaiters(t, "job", 1)
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := r.Waiters("job"); n != 0 || waiting != 1 || ended != 2 {
			t.Errorf("%d callers wait; the hooks were told of %d waits and %d ends, want 1 and 2", n, waiting, ended)
		}
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	})
}

// The hooks of a test run before the count changes: AwaitWaiters returns when they have seen the
// caller, and a caller that they have not seen off still counts.
func TestHooksRunBeforeTheCount(t *testing.T) {
	r := relocktest.Start(t)
	inWaiting, inEnd := make(chan int, 1), make(chan int, 1)
	s := r.Session(t, rlock.Config{Trace: &rlock.Trace{
		Waiting: func(context.Context, locktrace.Waiting) { inWaiting <- r.Waiters("job") },
		AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) {
			if e.Waited {
				inEnd <- r.Waiters("job")
			}
		},
	}})
	m := rlock.New(s, "job")
	_, h, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Do(t.Context(), func(context.Context) error { return nil }) }()
	r.AwaitWaiters(t, "job", 1)
	if err := errors.Join(h.Unlock(), <-done); err != nil {
		t.Fatal(err)
	}
	if n := <-inWaiting; n != 0 {
		t.Errorf("%d callers counted while the hook Waiting ran, want 0", n)
	}
	if n := <-inEnd; n != 1 {
		t.Errorf("%d callers counted while the hook AcquireEnd ran, want 1", n)
	}
}

// A hook of the test that panics counts as one that has returned, here too: the callers are counted.
func TestWaitersOfHooksThatPanic(t *testing.T) {
	r := relocktest.Start(t)
	s := r.Session(t, rlock.Config{Logger: slog.New(slog.DiscardHandler), Trace: &rlock.Trace{
		Waiting:    func(context.Context, locktrace.Waiting) { panic("Waiting") },
		AcquireEnd: func(context.Context, locktrace.AcquireEnd) { panic("AcquireEnd") },
	}})
	m := rlock.New(s, "job")
	_, h, err := m.Lock(t.Context())
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- m.Do(t.Context(), func(context.Context) error { return nil }) }()
	r.AwaitWaiters(t, "job", 1)
	must(t, errors.Join(h.Unlock(), <-done))
	if n := r.Waiters("job"); n != 0 {
		t.Errorf("%d callers wait, want 0", n)
	}
}
