package handover_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// ForceUnlock meets a claim that was handed over: the section that is open ends at once, for the
// lease is 30 s and the first renewal 10 s away, and the next waiter gets a claim of its own.
func TestHandOverForceUnlock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, own := range []bool{false, true} {
			for passed := range 3 {
				st := locktest.NewStage(t, s, rlock.Config{})
				operator := st.Session
				if !own {
					operator = dial(t, s, rlock.Config{})
				}
				section, h := st.Lock(st.Ctx)
				in := locktest.Locked{Ctx: section, Hold: h}
				for range passed {
					in = st.HandOver(in.Hold, st.Queue(st.Ctx))
				}
				next := st.Queue(st.Ctx)
				found, err := rlock.New(operator, st.Name).ForceUnlock(st.Ctx)
				must(t, err)
				if !found {
					t.Error("ForceUnlock found no hold")
				}
				locktest.Ends(t, in.Ctx, 5*time.Second, rlock.ErrLost)
				got := st.In(next)
				locktest.Is(t, "Unlock", in.Hold.Unlock(), rlock.ErrLost)
				must(t, got.Ctx.Err())
				if owner := locktest.OnlyOwner(t, st); owner != got.Hold.Owner() || owner == in.Hold.Owner() {
					t.Errorf("the owner is %q, want %q", owner, got.Hold.Owner())
				}
				must(t, got.Hold.Unlock())
				locktest.NothingLeft(t, s, st.Session)
			}
		}
	})
}

// Scripts are forgotten between hand-overs: they are sent whole.
func TestHandOverScriptFlush(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		c := st.Start(4, st.Mutex, func(section context.Context) { must(t, section.Err()) }, nil)
		for range 10 {
			st.Runs(200)
			must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
		}
		st.Runs(200)
		c.End()
		locktest.NothingLeft(t, s, st.Session)
		if lost := st.Losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// R10: the server stalls for half a lease between hand-overs: nobody loses the lock,
// and the hand-overs go on afterwards.
func TestHandOverStalledServer(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		if !s.CanPause() {
			t.Skip("miniredis cannot be paused")
		}
		redistest.SkipShort(t)
		const lease = 4 * time.Second
		st := locktest.NewStage(t, s, rlock.Config{Lease: lease})
		c := st.Start(4, st.Mutex, func(section context.Context) { must(t, section.Err()) }, nil)
		for range 2 {
			st.Runs(200)
			s.Pause()
			<-time.After(lease / 2)
			s.Resume()
		}
		st.Runs(200)
		c.End()
		locktest.NothingLeft(t, s, st.Session)
		if lost := st.Losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// The server dies between hand-overs and comes back empty. The open section ends with ErrLost or
// unlocks in vain, and the turns go on.
func TestHandOverServerRestarts(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{Lease: 3 * time.Second, ReleaseTimeout: 500 * time.Millisecond})
		down := func(err error) bool { return !errors.Is(err, rlock.ErrNotHeld) && !errors.Is(err, rlock.ErrClosed) }
		c := st.Start(4, st.Mutex, func(context.Context) {}, down)
		for range 2 {
			st.Runs(200)
			s.Kill()
			// Until nothing can be handed over any more, since the lease is too old.
			for n := -1; n != st.Count(); {
				n = st.Count()
				<-time.After(200 * time.Millisecond)
			}
			s.Restart(t)
		}
		st.Runs(200)
		c.End()
		locktest.NothingLeft(t, s, st.Session)
	})
}
