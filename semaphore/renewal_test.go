package semaphore_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// A permit comes free while the caller in front is asking, and its renewal is answered before the
// front is: the caller that it is given to has it renewed.
func TestARenewalAnsweredWhileAPermitIsParked(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		renewed := make(chan error, 100)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, Trace: &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed <- e.Err }}})
		sem := semaphore.New(ses, "x", 1)
		_, h, err := sem.Acquire(locktest.Within(t, time.Minute), 1)
		locktest.Must(t, err)
		semaphore.SliceFor(ses, "x", time.Hour)
		seen, release := p.HoldReply(locktest.Runs(semaphore.ScriptSources()["renew"]))
		locktest.Get(t, seen, lease, "a renewal")
		p.Reset()
		_, refuse := p.HoldReply(locktest.Runs(semaphore.ScriptSources()["acquire"]))
		type got struct {
			ctx context.Context
			h   *semaphore.Permits
			err error
		}
		next := make(chan got, 1)
		go func() {
			ctx, h, err := sem.Acquire(context.Background(), 1)
			next <- got{ctx, h, err}
		}()
		redistest.Eventually(t, lease/3, "it asks", func() bool { return len(p.Sent()) > 0 })
		locktest.Must(t, h.Release())
		release()
		locktest.Must(t, locktest.Get(t, renewed, lease, "the answer"))
		refuse()
		l := locktest.Get(t, next, lease, "the next")
		locktest.Must(t, l.err)
		if l.h.Owner() != h.Owner() {
			t.Fatal("it was not handed over")
		}
		<-time.After(lease + lease/2)
		if l.ctx.Err() != nil {
			t.Fatalf("the permit was lost: %v", context.Cause(l.ctx))
		}
		locktest.Must(t, l.h.Release())
	})
}

// A renewal is told as one of so many claims, however many permits they are for.
func TestARenewalOfPermitsCountsClaims(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		renewed := make(chan int, 100)
		ses := locktest.Dial(t, s, rlock.Config{Lease: lease, Trace: &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed <- e.Claims }}})
		_, h, err := semaphore.New(ses, "x", 10).Acquire(locktest.Within(t, time.Minute), 10)
		locktest.Must(t, err)
		if n := locktest.Get(t, renewed, lease, "a renewal"); n != 1 {
			t.Errorf("the renewal of ten permits of one caller is told as one of %d claims, want 1", n)
		}
		locktest.Must(t, h.Release())
	})
}
