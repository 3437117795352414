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

// An observer sees the leader that is there, each new one, and each new value, of every session.
func TestObserve(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a, b := dial(t, s, slow()), dial(t, s, slow())
		watch := func(ses *rlock.Session) <-chan election.Leader {
			c, err := election.New(ses, "x").Observe(ctx)
			must(t, err)
			return c
		}
		early := watch(b)
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		observes(t, early, 1, "a")
		mine, theirs := watch(a), watch(b)
		all := []<-chan election.Leader{early, mine, theirs}
		for _, c := range all[1:] {
			observes(t, c, 1, "a")
		}
		must(t, first.l.Publish(ctx, "a2"))
		for _, c := range all {
			observes(t, c, 1, "a2")
		}
		second := campaign(t, ctx, b, "b", 1)
		must(t, first.l.Resign())
		e := leads(t, second, 2)
		for _, c := range all {
			observes(t, c, 2, "b")
		}
		must(t, e.l.Resign())
		for _, c := range all {
			observes(t, c, 0, "")
		}
		must(t, b.Close())
		closed(t, early)
		closed(t, theirs)
		must(t, a.Close())
		closed(t, mine)
	})
}

// An observer that does not read gets the newest leader, and holds up nobody. One whose context
// has ended is told so.
func TestSlowObserver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a, b := dial(t, s, slow()), dial(t, s, slow())
		watch := func(ses *rlock.Session) <-chan election.Leader {
			c, err := election.New(ses, "x").Observe(ctx)
			must(t, err)
			return c
		}
		early, mine, theirs := watch(b), watch(a), watch(b)
		e := leads(t, campaign(t, ctx, b, "b", 0), 1)
		observes(t, mine, 1, "b")
		observes(t, theirs, 1, "b")
		for _, value := range []string{"b2", "b3", "b4"} {
			must(t, e.l.Publish(ctx, value))
			observes(t, mine, 1, value)
			observes(t, theirs, 1, value)
		}
		redistest.Eventually(t, patience, "the last value for one that was slow", func() bool {
			select {
			case l := <-early:
				return l.Value == "b4"
			default:
				return false
			}
		})
		short, cancel := context.WithCancel(ctx)
		c, err := election.New(a, "x").Observe(short)
		must(t, err)
		observes(t, c, 1, "b4")
		cancel()
		closed(t, c)
		// One that reads no more holds up nobody, Close above all.
		for _, value := range []string{"b5", "b6", "b7"} {
			must(t, e.l.Publish(ctx, value))
			observes(t, mine, 1, value)
			observes(t, theirs, 1, value)
		}
		redistest.Eventually(t, patience, "one that is kept for it", func() bool { return len(early) == 1 })
		must(t, b.Close())
		left := 0
		for range early {
			left++
		}
		if left != 1 {
			t.Errorf("%d leaders were kept for one that did not read, want 1", left)
		}
		must(t, a.Close())
	})
}

// closed waits until an observer's channel is closed.
func closed(t testing.TB, c <-chan election.Leader) {
	t.Helper()
	if l, ok := <-c; ok {
		t.Fatalf("one more leader: %+v", l)
	}
}

// What an observer did not hear of it sees within a poll floor, and after a reconnect.
func TestObserverLooksByItself(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a := dial(t, s, slow())
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		b := dial(t, s, rlock.Config{PollFloor: 200 * time.Millisecond})
		polls, err := election.New(b, "x").Observe(ctx)
		must(t, err)
		observes(t, polls, 1, "a")
		must(t, s.Do(t, "HSET", "relock_leader:{x}", "value", "unheard").Error())
		observes(t, polls, 1, "unheard")

		cut, p := locktest.DialProxy(t, s, slow())
		c, err := election.New(cut, "x").Observe(ctx)
		must(t, err)
		observes(t, c, 1, "unheard")
		p.Refuse(true)
		p.Cut()
		must(t, first.l.Publish(ctx, "meanwhile"))
		p.Refuse(false)
		observes(t, c, 1, "meanwhile")
		observes(t, polls, 1, "meanwhile")
	})
}

// Shutdown does not wait for observers, which have no end of their own.
func TestShutdownWithAnObserver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		ses := dial(t, s, slow())
		e := leads(t, campaign(t, ctx, ses, "a", 0), 1)
		c, err := election.New(ses, "x").Observe(ctx)
		must(t, err)
		observes(t, c, 1, "a")
		ended := make(chan error, 1)
		go func() { ended <- ses.Shutdown(ctx) }()
		redistest.Eventually(t, patience, "Shutdown to begin", func() bool {
			_, h, err := rlock.New(ses, "y").TryLock(ctx)
			_ = h.Unlock()
			return errors.Is(err, rlock.ErrClosed)
		})
		must(t, e.l.Publish(ctx, "b")) // the leadership is an open section, and is observed until it ends
		observes(t, c, 1, "b")
		must(t, e.l.Resign())
		must(t, locktest.Get(t, ended, patience, "Shutdown to end"))
		for l := range c {
			if l != (election.Leader{}) { // that nobody leads may be seen or not
				t.Errorf("one more leader: %+v", l)
			}
		}
	})
}

// An observer sees that nobody leads any more: by message after a Resign, a Close and a forced end, and
// within a poll floor of the end of a lease.
func TestObserveNobodyLeads(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		b := dial(t, s, slow())
		c, err := election.New(b, "x").Observe(ctx)
		must(t, err)
		a := dial(t, s, slow())
		ways := []func(l *election.Leadership){
			func(l *election.Leadership) { must(t, l.Resign()) },
			func(*election.Leadership) {
				_, err := fairlock.New(b, "x").ForceUnlock(ctx)
				must(t, err)
			},
			func(*election.Leadership) { must(t, a.Close()) },
		}
		for i, end := range ways {
			e := leads(t, campaign(t, ctx, a, "a", 0), int64(i+1))
			observes(t, c, int64(i+1), "a")
			end(e.l)
			observes(t, c, 0, "")
			_ = e.l.Resign()
		}

		lease := s.Slowed(time.Second)
		dies, proxy := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		polls, err := election.New(dial(t, s, rlock.Config{PollFloor: lease / 5}), "x").Observe(ctx)
		must(t, err)
		leads(t, campaign(t, ctx, dies, "a", 0), int64(len(ways)+1))
		observes(t, polls, int64(len(ways)+1), "a")
		proxy.BlackHole(true)
		observes(t, polls, 0, "")
	})
}

// Between a leader and the next, who has not published its value yet, an observer does not see that nobody
// leads, though it looks.
func TestObserverWaitsForTheValueOfTheNextLeader(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a := dial(t, s, slow())
		b, pb := locktest.DialProxy(t, s, slow())
		watcher, looks := locktest.DialProxy(t, s, rlock.Config{PollFloor: 20 * time.Millisecond})
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		c, err := election.New(watcher, "x").Observe(ctx)
		must(t, err)
		observes(t, c, 1, "a")
		second := campaign(t, ctx, b, "b", 1)
		seen, release := pb.HoldRequest(locktest.Runs(src["publish"]))
		must(t, first.l.Resign())
		locktest.Get(t, seen, patience, "the value to be sent")
		looks.Reset()
		redistest.Eventually(t, patience, "the observer to look", func() bool {
			return locktest.Sent(looks, locktest.Runs(src["leader"])) > 2
		})
		select {
		case l := <-c:
			t.Errorf("an observer sees %+v before the next leader's value", l)
		default:
		}
		release()
		leads(t, second, 2)
		observes(t, c, 2, "b")
	})
}
