package fault_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// cancelling begins an Unlock that stops while it cancels the contexts of its section. The Unlock
// returns to the channel after resume was called.
func cancelling(t *testing.T, m *rlock.Mutex) (h *rlock.Hold, unlocked <-chan error, resume func()) {
	t.Helper()
	ctx, goOn := &locktest.Stopped{Context: within(t, time.Minute)}, make(chan struct{})
	resume = sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(resume)
	section, h, err := m.Lock(ctx)
	must(t, err)
	section.Done() // from now on there is something to be cancelled
	ctx.InDone.Until(goOn)
	unlocked = locktest.Go(h.Unlock)
	redistest.Eventually(t, 10*time.Second, "the section to be cancelled", ctx.InDone.Reached)
	return h, unlocked, resume
}

// The lock is ended by force just while its only Unlock cancels the contexts of the section.
func TestUnlockSaysThatTheLockWasForcedMeanwhile(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		lost, ends := make(chan locktrace.Lost, 10), make(chan locktrace.HoldReason, 10)
		ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
			Lost:    func(e locktrace.Lost) { lost <- e },
			HoldEnd: func(_ context.Context, e locktrace.HoldEnd) { ends <- e.Reason },
		}})
		m := rlock.New(ses, redistest.Name(t))
		_, unlocked, resume := cancelling(t, m)
		found, err := m.ForceUnlock(within(t, time.Minute))
		must(t, err)
		if !found {
			t.Error("ForceUnlock found no hold")
		}
		other, h, err := m.TryLock(within(t, time.Minute)) // the claim is gone, whatever the Unlock does
		must(t, err)
		resume()
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, 10*time.Second, "Unlock"), rlock.ErrLost)
		if why := locktest.Get(t, ends, 10*time.Second, "the end of the hold"); why != locktrace.HoldLost {
			t.Errorf("the hold ended by %q", why)
		}
		locktest.Get(t, lost, 10*time.Second, "the hook")
		must(t, other.Err())
		must(t, h.Unlock())
		locktest.NothingLeft(t, s, ses)
	})
}

// The lock can be trusted no longer while its only Unlock cancels the contexts of the section. Redis is
// told to release it when they have ended, and no sooner: else the next owner would be in before.
func TestUnlockSaysThatTheLeaseRanOutMeanwhile(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lost := make(chan locktrace.Lost, 10)
		ses := dial(t, s, rlock.Config{Lease: 1500 * time.Millisecond, Trace: &rlock.Trace{Lost: func(e locktrace.Lost) { lost <- e }}})
		name := redistest.Name(t)
		h, unlocked, resume := cancelling(t, rlock.New(ses, name))
		must(t, s.Do(t, "PEXPIRE", name, "60000").Error()) // else the lease is over too soon after
		locktest.Get(t, lost, 10*time.Second, "the loss")
		must(t, rlock.New(ses, name+"2").Do(within(t, time.Minute), func(context.Context) error { return nil }))
		locktest.Quiet(t, ses)
		if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
			t.Errorf("Redis counts %q holds of a section whose contexts have not ended", n)
		}
		resume()
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, 10*time.Second, "Unlock"), rlock.ErrLost)
		redistest.Eventually(t, 10*time.Second, "the lock is free", func() bool { return locktest.Free(t, s, name) })
		locktest.NothingLeft(t, s, ses)
	})
}
