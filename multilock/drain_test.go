package multilock_test

import (
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
)

// A Lock in no section that holds some of its locks, and waits for another one, is turned away by Shutdown at once. What it
// holds is no section of its caller's: it had to give way first, for which it has the more time the longer it has waited.
func TestShutdownTurnsAwayWhoHoldsSome(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Hour)
		trace, waiting := locktest.Waiting()
		ses, other := dial(t, s, rlock.Config{Trace: trace}), dial(t, s, rlock.Config{})
		_, busy, err := rlock.New(other, "b").Lock(ctx)
		must(t, err)
		multi := start(ctx, multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b")))
		rounds := 2 // of about 1 s, 2 s and so on
		if s.IsMini() {
			rounds = 6
		}
		for range rounds {
			locktest.Get(t, waiting, 5*time.Minute, "the multi-lock to hold a and wait for b")
		}
		began := time.Now()
		must(t, ses.Shutdown(ctx))
		is(t, "Lock", locktest.Get(t, multi, 10*time.Second, "the multi-lock to leave").err, rlock.ErrClosed)
		if took := time.Since(began); took > 500*time.Millisecond+s.Slack() {
			t.Errorf("it was turned away after %v", took)
		}
		free(t, ctx, rlock.New(other, "a"))
		must(t, busy.Unlock())
	})
}

// In an open section of the session it waits on.
func TestShutdownLetsASectionHoldSome(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		ses, other := dial(t, s, rlock.Config{Trace: trace}), dial(t, s, rlock.Config{})
		_, busy, err := rlock.New(other, "b").Lock(ctx)
		must(t, err)
		section, h, err := rlock.New(ses, "around").Lock(ctx)
		must(t, err)
		multi := start(section, multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b")))
		locktest.Get(t, waiting, 10*time.Second, "the multi-lock to hold a and wait for b")
		down := make(chan error, 1)
		go func() { down <- ses.Shutdown(ctx) }()
		redistest.Eventually(t, 10*time.Second, "Shutdown to begin", func() bool {
			_, h, err := rlock.New(ses, "probe").TryLock(ctx)
			_ = h.Unlock()
			return errors.Is(err, rlock.ErrClosed)
		})
		must(t, busy.Unlock())
		got := locktest.Get(t, multi, 20*time.Second, "both locks")
		must(t, got.err)
		must(t, got.h.Unlock())
		must(t, h.Unlock())
		must(t, locktest.Get(t, down, 10*time.Second, "Shutdown"))
	})
}
