package rlock_test

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
				st := newStage(t, s, rlock.Config{})
				operator := st.ses
				if !own {
					operator = dial(t, s, rlock.Config{})
				}
				section, h := st.lock(st.ctx)
				in := faultLocked{ctx: section, hold: h}
				for range passed {
					in = st.handOver(in.hold, st.queue(st.ctx))
				}
				next := st.queue(st.ctx)
				found, err := rlock.New(operator, st.name).ForceUnlock(st.ctx)
				must(t, err)
				if !found {
					t.Error("ForceUnlock found no hold")
				}
				locktest.Ends(t, in.ctx, 5*time.Second, rlock.ErrLost)
				got := st.in(next)
				locktest.Is(t, "Unlock", in.hold.Unlock(), rlock.ErrLost)
				must(t, got.ctx.Err())
				if owner := onlyOwner(t, st); owner != got.hold.Owner() || owner == in.hold.Owner() {
					t.Errorf("the owner is %q, want %q", owner, got.hold.Owner())
				}
				must(t, got.hold.Unlock())
				nothingLeft(t, s, st.ses)
			}
		}
	})
}

// Scripts are forgotten between hand-overs: they are sent whole.
func TestHandOverScriptFlush(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		c := st.start(4, st.m, func(section context.Context) { must(t, section.Err()) }, nil)
		for range 10 {
			st.runs(200)
			must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
		}
		st.runs(200)
		c.end()
		nothingLeft(t, s, st.ses)
		if lost := st.losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// R10: the server stalls for half a lease between hand-overs: nobody loses the lock,
// and the hand-overs go on afterwards.
func TestHandOverStalledServer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		if !s.CanPause() {
			t.Skip("miniredis cannot be paused")
		}
		redistest.SkipShort(t)
		const lease = 4 * time.Second
		st := newStage(t, s, rlock.Config{Lease: lease})
		c := st.start(4, st.m, func(section context.Context) { must(t, section.Err()) }, nil)
		for range 2 {
			st.runs(200)
			s.Pause()
			<-time.After(lease / 2)
			s.Resume()
		}
		st.runs(200)
		c.end()
		nothingLeft(t, s, st.ses)
		if lost := st.losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// The server dies between hand-overs and comes back empty. The open section ends with ErrLost or
// unlocks in vain, and the turns go on.
func TestHandOverServerRestarts(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{Lease: 3 * time.Second, ReleaseTimeout: 500 * time.Millisecond})
		down := func(err error) bool { return !errors.Is(err, rlock.ErrNotHeld) && !errors.Is(err, rlock.ErrClosed) }
		c := st.start(4, st.m, func(context.Context) {}, down)
		for range 2 {
			st.runs(200)
			s.Kill()
			// Until nothing can be handed over any more, since the lease is too old.
			for n := -1; n != st.count(); {
				n = st.count()
				<-time.After(200 * time.Millisecond)
			}
			s.Restart(t)
		}
		st.runs(200)
		c.end()
		nothingLeft(t, s, st.ses)
	})
}
