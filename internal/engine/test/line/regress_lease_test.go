package line_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// fromTheLine returns what a session is given by the release of another; both are configured alike.
func fromTheLine(t *testing.T, s *redistest.Server, cfg rlock.Config) locktest.Locked {
	t.Helper()
	a, b := dial(t, s, cfg), dial(t, s, cfg)
	ctx := within(t, time.Minute)
	_, h, err := rlock.New(a, "x").Lock(ctx)
	must(t, err)
	next := locktest.GoLock(rlock.New(b, "x"), ctx)
	locktest.AwaitInLine(t, s, "x", b)
	must(t, h.Unlock())
	got := locktest.Get(t, next, 5*time.Second, "the lock")
	must(t, got.Err)
	return got
}

// Config.QueueLease is of fair locks. However short it is, a section on a plain lock that was given by another's
// release is not lost.
func TestAShortQueueLeaseCostsNoPlainLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		got := fromTheLine(t, s, rlock.Config{QueueLease: 20 * time.Millisecond})
		locktest.Stays(t, got.Ctx, time.Second)
		must(t, got.Hold.Unlock())
	})
}

// A lock that was given by another's release outlives its process no longer than Config.Lease says, as any other,
// and is renewed in time.
func TestAGivenLockOutlivesItsProcessForALeaseAtMost(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(200 * time.Millisecond)
		got := fromTheLine(t, s, rlock.Config{Lease: lease})
		ttl, err := s.Do(t, "PTTL", "x").AsInt64()
		must(t, err)
		if left := time.Duration(ttl) * time.Millisecond; left > lease {
			t.Errorf("the lock stands for %v, and the lease is %v", left, lease)
		}
		locktest.Stays(t, got.Ctx, 5*lease)
		must(t, got.Hold.Unlock())
	})
}
