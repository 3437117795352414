package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A caller of a named owner that waits for what another one of that name gets leaves when Shutdown
// begins if it is in no section, although the other one is in one and goes on.
func TestShutdownEndsACallerBehindOneOfItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := miniredis.NewMiniRedis()
		r.ClockTTL(true)
		defer r.Close()
		ses, other := locktest.DialBubble(t, r, rlock.Config{}), locktest.DialBubble(t, r, rlock.Config{})
		defer other.Close()
		defer ses.Close()
		ctx := context.Background()
		_, h, err := rlock.New(other, "x").Lock(ctx)
		must(t, err)
		section, outer, err := rlock.New(ses, "y").Lock(ctx)
		must(t, err)
		x := rlock.New(ses, "x")
		inside := faultGo(func() error {
			return x.Do(rlock.WithOwner(section, "bob"), func(context.Context) error { return nil })
		})
		synctest.Wait()
		outside := faultGo(func() error { _, _, err := x.Lock(rlock.WithOwner(ctx, "bob")); return err })
		synctest.Wait()
		done := faultGo(func() error { return ses.Shutdown(ctx) })
		locktest.Is(t, "the one outside", locktest.Get(t, outside, time.Millisecond, "it"), rlock.ErrClosed)
		must(t, h.Unlock())
		must(t, locktest.Get(t, inside, 5*time.Second, "the one inside"))
		must(t, outer.Unlock())
		must(t, locktest.Get(t, done, 5*time.Second, "Shutdown"))
	})
}

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
		seen, release := p.HoldReply(faultRuns(t, "extend"))
		extended := faultGo(func() error { return h.Extend(parent, time.Minute) })
		locktest.Get(t, seen, 10*time.Second, "Extend")
		gate := make(chan struct{})
		ctx.stuck.Store(&gate)
		unlocked := faultGo(h.Unlock)
		redistest.Eventually(t, 10*time.Second, "the hold is unlocked", func() bool { return h.Remaining() == 0 })
		release()
		err = locktest.Get(t, extended, 10*time.Second, "Extend")
		close(gate)
		must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
		locktest.Is(t, "Extend", err, rlock.ErrNotHeld)
	})
}
