package fairlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// unconfirmed has a release that is to enter a waiter anew go without an answer for the release timeout, while the
// waiter leaves; its session closes then, and Redis answers again.
func unconfirmed(t *testing.T, s *redistest.Server, async bool) {
	t.Helper()
	ctx := within(t, time.Minute)
	m := fairlock.New(dial(t, s, silent()), "x")
	cfg := silent()
	cfg.ReleaseTimeout = s.Slowed(500 * time.Millisecond)
	leaves, gone := make(chan struct{}, 100), make(chan error, 100)
	cfg.Trace = &rlock.Trace{ReleaseStart: func(ctx context.Context, _ locktrace.ReleaseStart) context.Context {
		leaves <- struct{}{}
		return ctx
	}}
	if async {
		cfg.Trace.ReleaseEnd = func(_ context.Context, e locktrace.ReleaseEnd) { gone <- e.Err }
	}
	p := newProxy(t, s)
	b := dialVia(t, s, p, cfg)
	inside, rest, leave := left(t, ctx, m, fairlock.New(b, "x"), 1)
	// What the hold with a lease of its own has told.
	for len(leaves)+len(gone) > 0 {
		select {
		case <-leaves:
		case <-gone:
		}
	}
	for _, name := range []string{"EVALSHA", "EVAL"} {
		p.RefuseCommand(name, "NOREPLICAS Not enough good replicas to write.")
	}
	refused := gone
	if async {
		inside.hold.UnlockAsync()
	} else {
		go func() { refused <- inside.hold.Unlock() }()
	}
	locktest.Get(t, leaves, patience, "the release that is to enter the waiter")
	leave[0]()
	is(t, "the waiter that leaves", locktest.Get(t, rest[0], patience, "Lock returns").err, context.Canceled)
	if err := locktest.Get(t, refused, patience, "Unlock returns"); !errors.Is(err, rlock.ErrUnavailable) {
		t.Errorf("Unlock: %v", err)
	}
	closed := goClose(b)
	for _, name := range []string{"EVALSHA", "EVAL"} {
		p.RefuseCommand(name, "")
	}
	must(t, locktest.Get(t, closed, patience, "Close returns"))
	if keys := s.Keys(t); len(keys) > 0 { // at once: what is left behind ends with a lease
		t.Errorf("a session that has closed has left %q\n%s", keys, locktest.Describe(t, s))
	}
}

// A release that had no answer in time is sent again by the session, also when it closes: the caller that it was to
// enter in the line has left by then, and is not entered.
func TestAReleaseThatIsSentAgainEntersNoCallerThatHasLeft(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		unconfirmed(t, s, false)
	})
}

// The same with an UnlockAsync, which the session sends again in the background from the beginning.
func TestADepartureThatIsSentAgainEntersNoCallerThatHasLeft(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		unconfirmed(t, s, true)
	})
}
