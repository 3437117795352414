package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An owner's id that is asked for after the lock was handed over from it: to use it means
// to begin anew, not to enter what Redis still has under it.
func TestHandOverFormerOwnerIsNamed(t *testing.T) {
	for _, asked := range []struct {
		name string
		id   func(section context.Context, h *rlock.Hold) string
	}{
		{"Hold.Owner", func(_ context.Context, h *rlock.Hold) string { return h.Owner() }},
		{"OwnerFrom", func(section context.Context, _ *rlock.Hold) string { id, _ := rlock.OwnerFrom(section); return id }},
	} {
		t.Run(asked.name, func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				st := newStage(t, s, rlock.Config{})
				other := dial(t, s, rlock.Config{})
				section, h := st.lock(st.ctx)
				b := st.queue(st.ctx)
				seen, arrive := st.stuck()
				in := st.handOver(h, b)
				st.reaches(seen)
				former := faultGoLock(rlock.New(other, st.name), st.ctx)
				named := make(chan faultLocked, 1)
				go func() { // asking may take until Redis has heard of the hand-over
					ctx := rlock.WithOwner(st.ctx, asked.id(section, h))
					c, h, err := rlock.New(other, st.name).Lock(ctx)
					named <- faultLocked{c, h, err, time.Now()}
				}()
				select {
				case <-named:
					t.Fatal("it got in while another was inside")
				case <-time.After(100 * time.Millisecond):
				}
				arrive()
				st.stands("1")
				faultStays(t, in.ctx, 50*time.Millisecond)
				st.outside(named, "Lock by the former owner's name")
				must(t, in.hold.Unlock())
				must(t, st.in(former).hold.Unlock())
				must(t, st.in(named).hold.Unlock())
				nothingLeft(t, s, st.ses, other)
			})
		})
	}
}

// A former owner whose successor lost the lock, without a word from Redis, has begun anew
// when the loser unlocks. What the loser takes back must not be that hold.
func TestHandOverLoserLeavesTheFormerOwnersNextHold(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprintf("elsewhere=%v", elsewhere), func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				const lease = 900 * time.Millisecond
				st := newStage(t, s, rlock.Config{Lease: lease})
				far := dial(t, s, rlock.Config{})
				m := st.m
				if elsewhere {
					m = rlock.New(far, st.name)
				}
				section, h := st.lock(st.ctx)
				b := st.queue(st.ctx)
				st.p.RefuseCommand("EVALSHA", "BUSY not now") // so that Redis never hears of it
				in := st.handOver(h, b)
				locktest.Ends(t, in.ctx, lease+faultSlack, rlock.ErrLost)
				redistest.Eventually(t, lease+faultSlack, "the lease is over", func() bool { return faultFree(t, s, st.name) })
				st.p.RefuseCommand("EVALSHA", "")
				next, again, err := m.Lock(context.WithoutCancel(section))
				must(t, err)
				locktest.Is(t, "Unlock of the loser", in.hold.Unlock(), rlock.ErrLost)
				for end := time.Now().Add(lease / 3); time.Now().Before(end); {
					faultStays(t, next, 10*time.Millisecond)
					if n := faultOwners(t, s, st.name); n != 1 {
						t.Fatal("it is inside, and Redis has nobody")
					}
				}
				must(t, again.Unlock())
				nothingLeft(t, s, st.ses, far)
			})
		})
	}
}

// Who waits in one session until another one has told Redis of a hand-over hears of the end
// of his own.
func TestHandOverCloseWhileAFormerOwnerWaits(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		far := dial(t, s, rlock.Config{})
		section, h := st.lock(st.ctx)
		b := st.queue(st.ctx)
		seen, arrive := st.stuck()
		in := st.handOver(h, b)
		st.reaches(seen)
		former := faultGoLock(rlock.New(far, st.name), context.WithoutCancel(section))
		redistest.Eventually(t, 5*time.Second, "it waits", func() bool {
			_, _, _, _, active := far.Books()
			return active == 1
		})
		from := time.Now()
		must(t, far.Close())
		if d := time.Since(from); d > 2*time.Second {
			t.Errorf("Close took %v", d)
		}
		locktest.Is(t, "Lock", locktest.Get(t, former, 2*time.Second, "the end of Lock").err, rlock.ErrClosed)
		arrive()
		must(t, in.hold.Unlock())
		nothingLeft(t, s, st.ses)
	})
}
