package quorum_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/quorum"
	"relock/rlock"
)

// While sessions shut down an open section goes on, and takes the locks that it needs to come to its
// end: at once, and also those that it has to wait for. What lies in no section is turned away.
func TestSectionTakesLocksDuringShutdown(t *testing.T) {
	all := cluster(t, 3, real)
	ctx := within(t, time.Minute)
	sessions := dial(t, all, slow())
	plain, inner := rlock.New(sessions[0], "plain"), quorum.New(sessions, "inner")
	theirs := rlock.New(dial(t, all[:1], slow())[0], "plain")
	section, h := lock(t, ctx, quorum.New(sessions, "outer"))
	votes(t, h, 3)
	done := make(chan error, len(sessions))
	for _, s := range sessions {
		go func() { done <- s.Shutdown(ctx) }()
	}
	for _, s := range sessions {
		redistest.Eventually(t, 10*time.Second, "the session to turn callers away", func() bool {
			_, h, err := rlock.New(s, "other").TryLock(ctx)
			if err == nil {
				must(t, h.Unlock())
			}
			return errors.Is(err, rlock.ErrClosed)
		})
	}

	free(t, section, inner)
	_, held, err := theirs.Lock(ctx)
	must(t, err)
	got := make(chan error, 1)
	go func() { got <- plain.Do(section, func(context.Context) error { return nil }) }()
	redistest.Eventually(t, 10*time.Second, "the section to wait for the lock", func() bool {
		n, err := theirs.Waiters(ctx)
		return err == nil && n == 1 || len(got) == 1
	})
	must(t, held.Unlock())
	must(t, locktest.Get(t, got, 10*time.Second, "the section to get the lock"))

	must(t, h.Unlock())
	for range sessions {
		must(t, locktest.Get(t, done, 10*time.Second, "the shutdown"))
	}
}
