package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/election"
	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Run leads until its ctx ends. It resigns when OnStartedLeading has returned, no earlier, and the next
// candidate leads by that. Both see who leads.
func TestRun(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, stop := context.WithCancel(within(t, time.Minute))
		a, b := dial(t, s, slow()), dial(t, s, slow())
		first := run(t, ctx, a, "a")
		leading := first.leads()
		sees(t, ctx, b, 1, "a")
		last, end := context.WithCancel(within(t, time.Minute))
		second := run(t, last, b, "b")
		stands(t, b, 1)
		observes(t, first.leaders, 1, "a")
		observes(t, second.leaders, 1, "a")
		isLeader(t, a, true)
		isLeader(t, b, false)

		stop()
		<-leading.Done()
		if cause := context.Cause(leading); cause != context.Canceled {
			t.Errorf("OnStartedLeading's ctx ends with %v", cause)
		}
		_, h, err := rlock.New(b, "x").TryLock(within(t, patience))
		is(t, "the lock before OnStartedLeading has returned", err, rlock.ErrNotAcquired)
		_ = h.Unlock()
		stands(t, b, 1)
		first.did("started")
		if err := first.returns(); err != nil {
			t.Errorf("Run: %v", err)
		}
		first.did("started", "returned", "stopped", "over")
		isLeader(t, a, false)

		leading = second.leads()
		isLeader(t, b, true)
		observes(t, second.leaders, 2, "b")
		end()
		<-leading.Done()
		must(t, second.returns())
		isLeader(t, b, false)
		if _, err := second.e.Leader(within(t, patience)); !errors.Is(err, election.ErrNoLeader) {
			t.Errorf("after all have resigned: %v", err)
		}
	})
}

func isLeader(t testing.TB, s *rlock.Session, want bool) {
	t.Helper()
	if got := election.New(s, "x").IsLeader(); got != want {
		t.Fatalf("IsLeader is %v, want %v", got, want)
	}
}

// A loss ends OnStartedLeading's ctx. Run returns it when that has returned, and does not campaign again.
func TestRunLost(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a, b := dial(t, s, slow()), dial(t, s, slow())
		x := run(t, ctx, a, "a")
		leading := x.leads()
		observes(t, x.leaders, 1, "a")
		if ok, err := fairlock.New(b, "x").ForceUnlock(ctx); !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		ends(t, leading, patience, rlock.ErrLost)
		isLeader(t, a, false)
		observes(t, x.leaders, 0, "")
		x.did("started")
		is(t, "Run", x.returns(), rlock.ErrLost)
		x.did("started", "returned", "stopped", "over")
		if _, err := x.e.Leader(ctx); !errors.Is(err, election.ErrNoLeader) {
			t.Errorf("after the loss: %v", err)
		}
	})
}

// OnStartedLeading takes longer to return than the leadership is kept for: another leads meanwhile, and
// Run says so.
func TestRunOutlastsItsLease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(300 * time.Millisecond)
		ctx, stop := context.WithCancel(within(t, time.Minute))
		a, b := dial(t, s, rlock.Config{Lease: lease}), dial(t, s, rlock.Config{Lease: lease})
		x := run(t, ctx, a, "a")
		x.leads()
		next := campaign(t, within(t, time.Minute), b, "b", 1)
		stop()
		leads(t, next, 2)
		is(t, "Run", x.returns(), rlock.ErrLost)
		sees(t, within(t, patience), a, 2, "b")
	})
}

// The deadline of ctx ends the leadership, and Redis does not answer: Run says that it has not confirmed
// the end. That error matches the one of ctx too, which says nothing of who leads.
func TestRunEndsByADeadlineWhileRedisIsSilent(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, proxy := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: time.Second})
		ctx, stop := context.WithTimeout(t.Context(), s.Slowed(time.Second))
		defer stop()
		x := run(t, ctx, ses, "a")
		leading := x.leads()
		proxy.BlackHole(true)
		ends(t, leading, patience, context.DeadlineExceeded)
		is(t, "Run", x.returns(), rlock.ErrUnavailable)
		proxy.BlackHole(false)
	})
}

// The end of the session ends the leadership. Shutdown waits for OnStartedLeading, and nobody else leads
// meanwhile; Close does not wait.
func TestRunEndsWithItsSession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a, b := dial(t, s, slow()), dial(t, s, slow())
		x := run(t, ctx, a, "a")
		leading := x.leads()
		waiter := run(t, ctx, a, "behind it")
		next := run(t, ctx, b, "b")
		stands(t, b, 2)
		ended := make(chan error, 1)
		go func() { ended <- a.Shutdown(ctx) }()
		ends(t, leading, patience, rlock.ErrClosed)
		is(t, "Run of one that waited", locktest.Get(t, waiter.err, patience, "Run to return"), rlock.ErrClosed)
		waiter.did("stopped", "over")
		isLeader(t, a, true)
		sees(t, ctx, b, 1, "a")
		is(t, "Run", x.returns(), rlock.ErrClosed)
		must(t, locktest.Get(t, ended, patience, "Shutdown to end"))
		x.did("started", "returned", "stopped", "over")

		leading = next.leads()
		must(t, b.Close())
		ends(t, leading, patience, rlock.ErrClosed)
		isLeader(t, b, false)
		next.did("started")
		is(t, "Run", next.returns(), rlock.ErrClosed)
		is(t, "Run on a closed session", election.New(b, "x").Run(ctx, "b", election.Callbacks{}), rlock.ErrClosed)
	})
}

// All callbacks may be nil, and OnStartedLeading may return at once: the leadership goes on.
func TestRunWithoutWork(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []election.Callbacks{{}, {OnStartedLeading: func(context.Context) {}}} {
			ctx, stop := context.WithCancel(within(t, time.Minute))
			lease := s.Slowed(300 * time.Millisecond)
			ses := dial(t, s, rlock.Config{Lease: lease})
			err := make(chan error, 1)
			go func() { err <- election.New(ses, "x").Run(ctx, "a", c) }()
			redistest.Eventually(t, patience, "it to lead", election.New(ses, "x").IsLeader)
			time.Sleep(2 * lease) // renewed meanwhile
			isLeader(t, ses, true)
			stop()
			must(t, locktest.Get(t, err, patience, "Run to return"))
			isLeader(t, ses, false)
			must(t, ses.Close())
		}
	})
}

// A candidate whose ctx ends does not lead, and Run returns nil; OnStoppedLeading is called, as it is
// by client-go.
func TestRunThatNeverLeads(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a := dial(t, s, slow())
		b, p := locktest.DialProxy(t, s, slow())
		done, cancel := context.WithCancel(ctx)
		cancel()
		x := run(t, done, b, "b")
		must(t, locktest.Get(t, x.err, patience, "Run to return"))
		x.did("stopped", "over")
		if log := p.Log(); len(log) != 0 {
			t.Errorf("it has sent %q", log)
		}
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		short, cancel := context.WithCancel(ctx)
		x = run(t, short, b, "b")
		stands(t, a, 1)
		observes(t, x.leaders, 1, "a")
		cancel()
		must(t, locktest.Get(t, x.err, patience, "Run to return"))
		x.did("stopped", "over")
		deserted(t, ctx, a)
		must(t, first.l.Resign())
	})
}

// Two Runs of one handle are two candidates.
func TestRunTwiceAtOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, stop := context.WithCancel(within(t, time.Minute))
		ses := dial(t, s, slow())
		first := run(t, ctx, ses, "a")
		leading := first.leads()
		last, end := context.WithCancel(within(t, time.Minute))
		second := run(t, last, ses, "b")
		stands(t, ses, 1)
		stop()
		<-leading.Done()
		must(t, first.returns())
		second.leads()
		sees(t, last, ses, 2, "b")
		isLeader(t, ses, true)
		end()
		must(t, second.returns())
		isLeader(t, ses, false)
	})
}

// An OnNewLeader that blocks holds up neither the leadership nor its end, only Run's return. What
// comes meanwhile is not called one by one, but the newest.
func TestRunWithABlockedOnNewLeader(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, stop := context.WithCancel(within(t, time.Minute))
		a := dial(t, s, slow())
		seen, proceed := make(chan election.Leader), make(chan struct{})
		stopped, err := make(chan struct{}), make(chan error, 1)
		go func() {
			err <- election.New(a, "x").Run(ctx, "a", election.Callbacks{
				OnStoppedLeading: func() { close(stopped) },
				OnNewLeader:      func(l election.Leader) { seen <- l; <-proceed },
			})
		}()
		observes(t, seen, 1, "a")
		watch, werr := election.New(a, "x").Observe(within(t, time.Minute))
		must(t, werr)
		observes(t, watch, 1, "a")
		for _, value := range []string{"a2", "a3"} {
			must(t, s.Do(t, "HSET", "relock_leader:{x}", "value", value).Error())
			must(t, s.Do(t, "PUBLISH", "relock_election:{x}", "1").Error())
			observes(t, watch, 1, value)
		}
		proceed <- struct{}{}
		redistest.Eventually(t, patience, "the newest value", func() bool {
			l := locktest.Get(t, seen, patience, "OnNewLeader to run")
			if l.Value != "a3" { // Run's observer looks a little later than the test's
				proceed <- struct{}{}
			}
			return l.Value == "a3"
		})
		stop()
		locktest.Get(t, stopped, patience, "OnStoppedLeading to run")
		isLeader(t, a, false)
		select {
		case e := <-err:
			t.Errorf("Run has returned (%v) beside OnNewLeader", e)
		default:
		}
		close(proceed)
		must(t, locktest.Get(t, err, patience, "Run to return"))
	})
}
