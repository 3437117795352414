package fairlock_test

import (
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A caller comes while the UnlockAsync of a TryLock is on its way, behind another caller of its session. It enters the line
// when that release is answered: it did so when the other caller had left the lock, behind all who came meanwhile.
func TestACallerBehindAnUnlockAsyncEntersTheLine(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, p := dialProxy(t, s, silent())
		m := fairlock.New(ses, "x")
		_, held, err := m.TryLock(ctx)
		must(t, err)
		next := goQueued(t, ctx, m, 1)
		seen, release := p.HoldRequest(runs("release"))
		defer release()
		held.UnlockAsync()
		locktest.Get(t, seen, patience, "the release")
		behind := goLock(ctx, m, rlock.Lease(time.Minute))
		pause(10 * time.Millisecond) // callers gather for 2 ms
		release()
		l := granted(t, next, patience, "the next")
		queued(t, m, 1)
		unlock(t, l)
		unlock(t, granted(t, behind, patience, "the one behind"))
		nothingLeft(t, s)
	})
}

// The same, and the release is not answered, while the other caller has the lock by it: by a message.
func TestACallerBehindAnUnlockAsyncEntersTheLineBeforeThatIsAnswered(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, p := dialProxy(t, s, silent())
		m, seenFrom := fairlock.New(ses, "x"), fairlock.New(dial(t, s, rlock.Config{}), "x")
		_, held, err := m.TryLock(ctx)
		must(t, err)
		next := goQueued(t, ctx, m, 1)
		seen, release := p.HoldRequest(runs("release"))
		defer release()
		_, answer := p.HoldReply(runs("release"))
		defer answer()
		held.UnlockAsync()
		locktest.Get(t, seen, patience, "the release")
		behind := goLock(ctx, m, rlock.Lease(time.Minute))
		pause(10 * time.Millisecond)
		release()
		l := granted(t, next, patience, "the next")
		queued(t, seenFrom, 1)
		answer()
		unlock(t, l)
		unlock(t, granted(t, behind, patience, "the one behind"))
		nothingLeft(t, s)
	})
}
