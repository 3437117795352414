package line_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The front of the queue is called by a release, and Redis cannot serve its attempts. When it leaves, the
// next one asks at once: no other message comes, and the clock would have it ask an hour later. The
// release names no key of tokens, so it cannot give the lock to a caller that wants one, and calls it.
func TestAWakeUpOfAFrontThatLeavesIsNotLost(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		cfg := rlock.Config{Lease: time.Hour, PollFloor: time.Hour}
		other, name := dial(t, s, cfg), redistest.Name(t)
		trace, waiting := locktest.Waiting()
		failed, failure := locktest.Failed()
		trace.Attempt, cfg.Trace = failed.Attempt, trace
		ses, p := locktest.DialProxy(t, s, cfg)
		m := rlock.New(ses, name, rlock.Fenced())
		_, h, err := rlock.New(other, name).Lock(within(t, time.Minute))
		must(t, err)
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		defer cancel()
		front := locktest.GoLock(m, ctx)
		locktest.Get(t, waiting, 10*time.Second, "the front")
		next := locktest.GoLock(m, within(t, time.Minute))
		locktest.Get(t, waiting, 10*time.Second, "the next one")
		locktest.Subscribed(t, s, 2) // the first of the line for long: then it has asked once more
		redistest.Eventually(t, 10*time.Second, "the front has asked", func() bool { return locktest.CallsSent(t, p, "acquire") == 2 })
		locktest.Quiet(t, ses)
		p.RefuseCommand("EVALSHA", "OOM command not allowed")
		must(t, h.Unlock())
		locktest.Get(t, failure, 10*time.Second, "the attempt of the front")
		cancel()
		locktest.Is(t, "Lock of the front", locktest.Get(t, front, 10*time.Second, "the front").Err, context.Canceled)
		p.RefuseCommand("EVALSHA", "")
		got := locktest.Get(t, next, 30*time.Second, "the next one")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		must(t, s.Do(t, "DEL", "redisson_lock_token:{"+name+"}").Error())
		locktest.NothingLeft(t, s, ses, other)
	})
}
