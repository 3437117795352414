package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The transfer ran, and its reply got lost with the connection. By the time it is sent
// again the lock has passed on: that must be told only after it is known what ran.
func TestHandOverLostReplyOfTransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		_, h := st.lock(st.ctx)
		b, c, d := st.queue(st.ctx), st.queue(st.ctx), st.queue(st.ctx)
		seen, _ := st.unanswered()
		in := st.handOver(h, b)
		st.reaches(seen)
		in = st.handOver(in.hold, c)
		st.p.Cut()
		st.stands("1")
		if n := faultSent(t, st.p, "transfer"); n < 3 {
			t.Errorf("%d transfers; this test is about one that was sent twice and one more", n)
		}
		must(t, in.hold.Unlock()) // not in memory: all connections were cut, who knows
		must(t, st.in(d).hold.Unlock())
		nothingLeft(t, s, st.ses)
		if lost := st.losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// The request or the reply got lost, and nothing else happens: it is sent again.
func TestHandOverTransferIsSentAgain(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for _, drop := range []func(*faulttest.Proxy, func([]string) bool){(*faulttest.Proxy).DropReply, (*faulttest.Proxy).DropRequest} {
			st := newStage(t, s, rlock.Config{})
			_, h := st.lock(st.ctx)
			b := st.queue(st.ctx)
			drop(st.p, faultRuns(t, "transfer"))
			in := st.handOver(h, b)
			st.stands("1")
			faultStays(t, in.ctx, 50*time.Millisecond)
			must(t, in.hold.Unlock())
			nothingLeft(t, s, st.ses)
			if lost := st.losses(); len(lost) > 0 {
				t.Errorf("lost: %q", lost)
			}
		}
	})
}

// The request got lost, and the last holder unlocks before Redis has heard of any of it.
func TestHandOverLostRequestOfTransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for range 3 {
			st := newStage(t, s, rlock.Config{})
			_, h := st.lock(st.ctx)
			b, c := st.queue(st.ctx), st.queue(st.ctx)
			st.p.DropRequest(faultRuns(t, "transfer"))
			st.p.DropReply(faultRuns(t, "release"))
			in := st.handOver(h, b)
			in = st.handOver(in.hold, c)
			must(t, in.hold.Unlock())
			locktest.Is(t, "second Unlock", in.hold.Unlock(), rlock.ErrNotHeld)
			locktest.Ends(t, in.ctx, time.Second, rlock.ErrReleased)
			nothingLeft(t, s, st.ses)
			if lost := st.losses(); len(lost) > 0 {
				t.Errorf("lost: %q", lost)
			}
		}
	})
}

// The last holder unlocks while it is unknown which of the owners Redis has: whichever it
// is, the lock is free then, and the answer that comes late does no harm.
func TestHandOverUnlockDuringATransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		for _, ran := range []bool{false, true} {
			for _, further := range []int{0, 1, 2} {
				_, h := st.lock(st.ctx)
				queue := []<-chan faultLocked{st.queue(st.ctx)}
				for range further {
					queue = append(queue, st.queue(st.ctx))
				}
				fault := st.stuck
				if ran {
					fault = st.unanswered
				}
				seen, goOn := fault()
				for i, next := range queue {
					h = st.handOver(h, next).hold
					if i == 0 {
						st.reaches(seen)
					}
				}
				unlocked := faultGo(h.Unlock)
				redistest.Eventually(t, 5*time.Second, "the release is sent", func() bool {
					_, _, _, agenda, _ := st.ses.Books()
					return agenda == 0
				})
				goOn()
				must(t, locktest.Get(t, unlocked, 5*time.Second, "Unlock"))
				nothingLeft(t, s, st.ses)
			}
		}
		if lost := st.losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// The lock was lost before Redis heard of the hand-over. Who was let in is told, and what
// stands there now is somebody else's business.
func TestHandOverOfALostLock(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		other := dial(t, s, rlock.Config{})
		for _, taken := range []bool{false, true} {
			_, h := st.lock(st.ctx)
			b, c := st.queue(st.ctx), st.queue(st.ctx)
			seen, arrive := st.stuck()
			in := st.handOver(h, b)
			st.reaches(seen)
			must(t, s.Do(t, "DEL", st.name).Error())
			var section context.Context
			var theirs *rlock.Hold
			if taken {
				var err error
				section, theirs, err = rlock.New(other, st.name).TryLock(st.ctx)
				must(t, err)
			}
			arrive()
			locktest.Ends(t, in.ctx, 5*time.Second, rlock.ErrLost)
			locktest.Is(t, "Unlock", in.hold.Unlock(), rlock.ErrLost)
			if taken {
				faultStays(t, section, 100*time.Millisecond)
				if n := faultCount(t, s, st.name, theirs.Owner()); n != "1" || faultOwners(t, s, st.name) != 1 {
					t.Fatalf("the other's count is %q", n)
				}
				st.outside(c, "a waiter")
				must(t, theirs.Unlock())
			}
			must(t, st.in(c).hold.Unlock())
			nothingLeft(t, s, st.ses, other)
		}
	})
}

// Redis was wiped between two hand-overs, and the one who has the lock when that is found
// out is not the one that Redis was told of.
func TestHandOverOfALockThatWasLostOnTheWay(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		_, h := st.lock(st.ctx)
		b, c, d := st.queue(st.ctx), st.queue(st.ctx), st.queue(st.ctx)
		seen, arrive := st.stuck()
		in := st.handOver(h, b)
		st.reaches(seen)
		in = st.handOver(in.hold, c)
		s.FlushAll(t)
		arrive()
		locktest.Ends(t, in.ctx, 5*time.Second, rlock.ErrLost)
		must(t, st.in(d).hold.Unlock()) // who waits gets it from Redis, before the loser unlocks
		locktest.Is(t, "Unlock", in.hold.Unlock(), rlock.ErrLost)
		nothingLeft(t, s, st.ses)
	})
}

// ForceUnlock meets a lock of which Redis does not know yet who has it. He is told at once:
// the lease is 30 s, the first renewal 10 s away.
func TestHandOverForceUnlockDuringATransfer(t *testing.T) {
	for _, c := range []struct {
		name     string
		ran, own bool
		further  int
	}{
		{"not run, by another session", false, false, 0},
		{"not run, passed on, by another session", false, false, 1},
		{"run, by another session", true, false, 0},
		{"run, passed on, by another session", true, false, 1},
		{"run, passed on twice, by another session", true, false, 2},
		{"run, by its own session", true, true, 0},
		{"run, passed on, by its own session", true, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			faultEach(t, func(t *testing.T, s *redistest.Server) {
				st := newStage(t, s, rlock.Config{})
				operator := st.ses
				if !c.own {
					operator = dial(t, s, rlock.Config{})
				}
				_, h := st.lock(st.ctx)
				queue := []<-chan faultLocked{st.queue(st.ctx)}
				for range c.further {
					queue = append(queue, st.queue(st.ctx))
				}
				fault := st.stuck
				if c.ran {
					fault = st.unanswered
				}
				seen, goOn := fault()
				var in faultLocked
				for i, next := range queue {
					in = st.handOver(h, next)
					h = in.hold
					if i == 0 {
						st.reaches(seen)
					}
				}
				forced := faultGo(func() error {
					found, err := rlock.New(operator, st.name).ForceUnlock(st.ctx)
					if err == nil && !found {
						err = errors.New("ForceUnlock found no hold")
					}
					return err
				})
				locktest.Ends(t, in.ctx, 5*time.Second, rlock.ErrLost)
				goOn()
				must(t, locktest.Get(t, forced, 5*time.Second, "ForceUnlock"))
				locktest.Is(t, "Unlock", in.hold.Unlock(), rlock.ErrLost)
				nothingLeft(t, s, st.ses)
			})
		})
	}
}

// Close while Redis is being told: the section ends, and nothing is left, whether the
// transfer has run or not.
func TestHandOverCloseDuringATransfer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for _, ran := range []bool{false, true} {
			for _, unlock := range []bool{false, true} { // before it is answered
				st := newStage(t, s, rlock.Config{})
				_, h := st.lock(st.ctx)
				b, c := st.queue(st.ctx), st.queue(st.ctx)
				fault := st.stuck
				if ran {
					fault = st.unanswered
				}
				seen, goOn := fault()
				in := st.handOver(h, b)
				st.reaches(seen)
				closed := faultGo(st.ses.Close)
				locktest.Ends(t, in.ctx, 5*time.Second, rlock.ErrClosed)
				locktest.Is(t, "the waiter", locktest.Get(t, c, 5*time.Second, "the waiter").err, rlock.ErrClosed)
				if unlock {
					locktest.Is(t, "Unlock", in.hold.Unlock(), rlock.ErrClosed)
				}
				goOn()
				must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
				if keys := s.Keys(t); len(keys) > 0 {
					t.Errorf("left in Redis: %q", keys)
				}
			}
		}
	})
}

// Close when the transfer is never answered: it returns in time, and what it could not
// take back comes late, and takes it back then.
func TestHandOverCloseWithoutAnAnswer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const timeout = 500 * time.Millisecond
		for _, ran := range []bool{false, true} {
			st := newStage(t, s, rlock.Config{ReleaseTimeout: timeout})
			_, h := st.lock(st.ctx)
			b := st.queue(st.ctx)
			fault := st.stuck
			if ran {
				fault = st.unanswered
			}
			seen, goOn := fault()
			in := st.handOver(h, b)
			st.reaches(seen)
			from := time.Now()
			err := st.ses.Close()
			if d := time.Since(from); d > 2*timeout+2*faultSlack {
				t.Errorf("Close took %v; the release timeout is %v", d, timeout)
			}
			if err == nil {
				t.Error("Close could not release, and says nothing")
			}
			locktest.Ends(t, in.ctx, time.Second, rlock.ErrClosed)
			goOn()
			redistest.Eventually(t, 5*time.Second, "the late release", func() bool { return faultFree(t, s, st.name) })
		}
	})
}

// Scripts are forgotten in the middle of a run: they are sent whole.
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

// R10: the server stalls for half a lease in the middle of a run: nobody loses the lock,
// and the run goes on afterwards.
func TestHandOverStalledServer(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		if !s.CanPause() {
			t.Skip("miniredis cannot be paused")
		}
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

// The server dies in the middle of a run and comes back empty. Who was inside is told or
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
