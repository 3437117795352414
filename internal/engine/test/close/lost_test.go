package close_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// Close neither waits for, nor reports, what was lost so long ago that Redis has nothing of it any more.
func TestCloseOfAClaimThatWasLostLongAgo(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: time.Second})
		section, h, err := rlock.New(ses, "x").Lock(within(t, time.Minute))
		must(t, err)
		p.BlackHole(true)
		defer p.BlackHole(false)
		locktest.Ends(t, section, 10*time.Second, rlock.ErrLost)
		locktest.Stays(t, t.Context(), 3*time.Second)
		began := time.Now()
		must(t, ses.Close())
		if d := time.Since(began); d > time.Second+s.Slack() {
			t.Errorf("it took %v", d)
		}
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

// A section that is lost since nothing renews it has the rest of its lease to notice that, also if the session closes meanwhile.
func TestShutdownLeavesALostSectionItsTimeToNotice(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 4 * time.Second
		ses, other := dial(t, s, rlock.Config{Lease: lease}), dial(t, s, rlock.Config{})
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		began := time.Now()
		_, h, err := rlock.New(ses, "x").Lock(ctx)
		must(t, err)
		cancel()
		down := locktest.Go(func() error { return ses.Shutdown(within(t, time.Minute)) })
		_, next, err := rlock.New(other, "x").Lock(within(t, time.Minute))
		must(t, err)
		if d := time.Since(began); d < lease-lease/100 {
			t.Errorf("the next owner is in after %v, and the lease is %v", d, lease)
		}
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		must(t, next.Unlock())
		must(t, locktest.Get(t, down, time.Minute, "Shutdown"))
	})
}

// Close releases what a caller has not taken in when the time for that is over: one whose hook does not return.
func TestCloseReleasesWhatACallerDoesNotTakeIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		in, goOn := make(chan struct{}), make(chan struct{})
		free := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(free)
		ses, err := rlock.NewSession(within(t, time.Minute), s.Client(t), rlock.Config{ReleaseTimeout: time.Second,
			Trace: &rlock.Trace{Attempt: func(locktrace.Attempt) { close(in); <-goOn }}})
		must(t, err)
		locked := locktest.GoLock(rlock.New(ses, "x"), within(t, time.Minute))
		locktest.Get(t, in, 10*time.Second, "the attempt")
		must(t, ses.Close())
		if !locktest.Free(t, s, "x") {
			t.Errorf("the lock stands for %v", locktest.PTTL(t, s, "x"))
		}
		free()
		locktest.Is(t, "Lock", locktest.Get(t, locked, 10*time.Second, "Lock").Err, rlock.ErrClosed)
	})
}

// A Lock with AtLeast that fails leaves nothing standing, also if Redis has let it in before its caller woke up.
func TestAtLeastOfALockThatFails(t *testing.T) {
	for what, fail := range map[string]func(t *testing.T, s *redistest.Server, ses *rlock.Session, cancel context.CancelFunc) (want error){
		"its session closes": func(t *testing.T, s *redistest.Server, ses *rlock.Session, _ context.CancelFunc) error {
			closed := locktest.Go(ses.Close)
			redistest.Eventually(t, 10*time.Second, "the end of the section", func() bool { return locktest.Free(t, s, "x") || len(closed) > 0 })
			return rlock.ErrClosed
		},
		"its caller leaves": func(_ *testing.T, _ *redistest.Server, _ *rlock.Session, cancel context.CancelFunc) error {
			cancel()
			return context.Canceled
		},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				waiting, goOn := make(chan struct{}), make(chan struct{})
				ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
					Waiting: func(context.Context, locktrace.Waiting) { close(waiting); <-goOn }}})
				_, h, err := fairlock.New(dial(t, s, rlock.Config{}), "x").Lock(within(t, time.Minute))
				must(t, err)
				ctx, cancel := context.WithCancel(within(t, time.Minute))
				defer cancel()
				next := locktest.GoLock(fairlock.New(ses, "x"), ctx, rlock.AtLeast(20*time.Second))
				<-waiting
				must(t, h.Unlock())
				redistest.Eventually(t, 10*time.Second, "the session to have the lock", func() bool {
					held, _, _, _, _ := locktest.Books(ses)
					return held == 1
				})
				want := fail(t, s, ses, cancel)
				close(goOn)
				locktest.Is(t, "Lock", locktest.Get(t, next, 10*time.Second, "Lock").Err, want)
				redistest.Eventually(t, 10*time.Second, "the lock to be free", func() bool { return locktest.Free(t, s, "x") })
			})
		})
	}
}
