package fault_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// An Unlock that Redis refuses, because it cannot serve now, is done as soon as Redis can: the
// lock does not stand for the rest of its lease.
func TestRefusedUnlockIsDoneLater(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		locktest.Together(t, []string{
			"OOM command not allowed", "MISCONF Redis is configured to save", "NOREPLICAS Not enough good replicas",
			"READONLY You can't write", "NOPERM this user has no permissions",
		}, func(text string) {
			ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 100 * time.Millisecond, Lease: time.Minute})
			name := redistest.Name(t) + text[:4]
			m := rlock.New(ses, name)
			_, h, err := m.Lock(ctx)
			must(t, err)
			_, p1, err := semaphore.New(ses, name+"-sem", 1).Acquire(ctx, 1)
			must(t, err)
			p.RefuseCommand("EVALSHA", text)
			locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrUnavailable)
			locktest.Is(t, "Release", p1.Release(), rlock.ErrUnavailable)
			if locktest.Free(t, s, name) {
				t.Fatal("the refused release has released")
			}
			p.RefuseCommand("EVALSHA", "")
			redistest.Eventually(t, 5*time.Second+s.Slack(), text+": the lock is free", func() bool { return locktest.Free(t, s, name) })
			sem := semaphore.New(ses, name+"-sem", 1)
			redistest.Eventually(t, 5*time.Second+s.Slack(), text+": the permit is back", func() bool {
				n, err := sem.Available(ctx)
				return err == nil && n == 1
			})
		})
	})
}

// An Extend that gets no answer ends with its hold, and says that the hold is lost.
func TestExtendDoesNotOutliveItsHold(t *testing.T) {
	const lease = time.Second
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		locktest.Together(t, slices.Collect(maps.Keys(gone)), func(how string) {
			ses, p := locktest.DialProxy(t, s, rlock.Config{})
			name := redistest.Name(t) + how
			begin := time.Now()
			m := rlock.New(ses, name)
			section, h, err := m.Lock(context.Background(), rlock.Lease(lease))
			must(t, err)
			_, permits, err := semaphore.New(ses, name+"-sem", 1).Acquire(context.Background(), 1, rlock.Lease(lease))
			must(t, err)
			// The section of this one goes on; the nested hold ends.
			outer, _, err := rlock.New(ses, name+"-outer").Lock(context.Background())
			must(t, err)
			_, nested, err := rlock.New(ses, name+"-outer").Lock(outer, rlock.Lease(lease))
			must(t, err)
			gone[how](p)
			var ends []<-chan error
			for _, extend := range []func(context.Context, time.Duration) error{h.Extend, permits.Extend, nested.Extend, nested.Extend} {
				ends = append(ends, locktest.Go(func() error { return extend(context.Background(), time.Minute) }))
			}
			for _, end := range ends {
				locktest.Is(t, how+", Extend", locktest.Get(t, end, lease+s.Slack(), "Extend"), rlock.ErrLost)
			}
			if d := time.Since(begin); d < lease/2 {
				t.Errorf("%s: Extend gave up after %v; the lease is %v", how, d, lease)
			}
			locktest.Ends(t, section, s.Slack(), rlock.ErrLost)
			if outer.Err() != nil {
				t.Errorf("%s: the outer section ended: %v", how, context.Cause(outer))
			}
		})
	})
}

// An Extend that is under way when the session closes, or whose context ends, says so.
func TestExtendEndsWithTheSessionOrItsContext(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 300 * time.Millisecond})
		_, h, err := rlock.New(ses, redistest.Name(t)).Lock(context.Background(), rlock.Lease(time.Minute))
		must(t, err)
		p.BlackHole(true)
		short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		locktest.Is(t, "Extend", h.Extend(short, time.Minute), context.DeadlineExceeded, rlock.ErrUnavailable)
		end := locktest.Go(func() error { return h.Extend(context.Background(), time.Minute) })
		closed := locktest.Go(ses.Close)
		locktest.Is(t, "Extend", locktest.Get(t, end, 5*time.Second, "Extend"), rlock.ErrClosed)
		locktest.Is(t, "Close", locktest.Get(t, closed, 5*time.Second, "Close"), rlock.ErrUnavailable)
	})
}
