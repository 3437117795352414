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

// An owner that the lock was handed over from may be used again, by who has kept its
// context. He must not get in by the field that still stands in Redis for somebody else.
func TestHandOverFormerOwnerBeginsAnew(t *testing.T) {
	for _, elsewhere := range []bool{false, true} { // in another session of the process
		for _, passed := range []int{1, 2} {
			t.Run(fmt.Sprintf("elsewhere=%v/passed=%d", elsewhere, passed), func(t *testing.T) {
				faultEach(t, func(t *testing.T, s *redistest.Server) {
					st := newStage(t, s, rlock.Config{})
					m := st.m
					if elsewhere {
						m = rlock.New(dial(t, s, rlock.Config{}), st.name)
					}
					section, h := st.lock(st.ctx)
					var queue []<-chan faultLocked
					for range passed {
						queue = append(queue, st.queue(st.ctx))
					}
					seen, arrive := st.stuck()
					var in faultLocked
					for _, next := range queue {
						in = st.handOver(h, next)
						h = in.hold
					}
					st.reaches(seen)
					again := context.WithoutCancel(section)
					tried := faultGo(func() error { // at once, not after the release timeout
						_, _, err := m.TryLock(again)
						return err
					})
					err := locktest.Get(t, tried, 3*time.Second, "TryLock")
					locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
					_, _, err = m.Lock(again, rlock.Wait(30*time.Millisecond))
					locktest.Is(t, "Lock with Wait", err, rlock.ErrNotAcquired)
					short, cancel := context.WithTimeout(again, 30*time.Millisecond)
					_, _, err = m.Lock(short)
					locktest.Is(t, "Lock with a deadline", err, rlock.ErrNotAcquired, context.DeadlineExceeded)
					cancel()
					former := faultGoLock(m, again)
					arrive()
					st.stands("1")
					faultStays(t, in.ctx, 50*time.Millisecond)
					st.outside(former, "Lock by the former owner")
					_, _, err = m.TryLock(again)
					locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
					must(t, in.hold.Unlock())
					got := st.in(former)
					must(t, got.ctx.Err())
					must(t, got.hold.Unlock())
					nothingLeft(t, s, st.ses)
					if lost := st.losses(); len(lost) > 0 {
						t.Errorf("lost: %q", lost)
					}
				})
			})
		}
	}
}

// The session that handed the lock over is closed, and could not tell Redis any more. Its
// owner may be used elsewhere when the lease is over.
func TestHandOverFormerOwnerOfAClosedSession(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		const lease = 900 * time.Millisecond
		st := newStage(t, s, rlock.Config{Lease: lease, ReleaseTimeout: 300 * time.Millisecond})
		far := dial(t, s, rlock.Config{})
		section, h := st.lock(st.ctx)
		b := st.queue(st.ctx)
		st.p.RefuseCommand("EVALSHA", "BUSY not now")
		in := st.handOver(h, b)
		if err := in.hold.Unlock(); err == nil {
			t.Error("Unlock without an answer succeeded")
		}
		if st.ses.Close() == nil {
			t.Error("Close could not release, and says nothing")
		}
		_, again, err := rlock.New(far, st.name).Lock(context.WithoutCancel(section), rlock.Wait(lease+5*time.Second))
		must(t, err)
		must(t, again.Unlock())
		nothingLeft(t, s, far)
	})
}
