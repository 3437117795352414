package claim_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An Extend that is answered when its hold is unlocked, but the section's contexts have not ended yet,
// has not found the lock lost.
func TestExtendBesideAnUnlock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		parent, cancel := context.WithCancel(within(t, 30*time.Second))
		defer cancel()
		ctx := &stuckContext{Context: parent}
		section, h, err := rlock.New(ses, "x").Lock(ctx, rlock.Lease(time.Minute))
		must(t, err)
		section.Done()
		seen, release := p.HoldReply(locktest.Calls(t, "extend"))
		extended := locktest.Go(func() error { return h.Extend(parent, time.Minute) })
		locktest.Get(t, seen, 10*time.Second, "Extend")
		gate := make(chan struct{})
		ctx.stuck.Store(&gate)
		unlocked := locktest.Go(h.Unlock)
		redistest.Eventually(t, 10*time.Second, "the hold is unlocked", func() bool { return h.Remaining() == 0 })
		release()
		err = locktest.Get(t, extended, 10*time.Second, "Extend")
		close(gate)
		must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
		locktest.Is(t, "Extend", err, rlock.ErrNotHeld)
	})
}
