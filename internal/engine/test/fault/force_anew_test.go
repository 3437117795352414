package fault_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A release enters the next caller of its session in the line. Before its answer is there another session has had the
// lock and has given it to that caller, who loses it again by force. The caller goes on as one that was refused.
func TestForceUnlockOfWhatAReleaseHasEntered(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 20 * time.Second})
		other := dial(t, s, rlock.Config{})
		_, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		others := locktest.GoLock(rlock.New(other, name), ctx)
		locktest.AwaitInLine(t, s, name, other)
		next := locktest.QueueUp(t, ses, name, ctx)
		locktest.RunFor(ses, name, -time.Second)
		_, answer := p.HoldReply(locktest.Calls(t, "release"))
		defer answer()
		unlocked := locktest.Go(h.Unlock)
		got := locktest.Get(t, others, 10*time.Second, "the other session's Lock")
		must(t, got.Err)
		locktest.AwaitInLine(t, s, name, ses)
		must(t, got.Hold.Unlock())
		found, err := rlock.New(other, name).ForceUnlock(ctx)
		must(t, err)
		if !found {
			t.Error("the caller that was entered does not have the lock")
		}
		redistest.Eventually(t, 10*time.Second, "the session to have heard of it", func() bool {
			_, asking, _, _, _ := locktest.Books(ses)
			return asking == 0
		})
		answer()
		must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
		got = locktest.Get(t, next, 20*time.Second, "the next Lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	})
}
