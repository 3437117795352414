package fairlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// left has a run of a session whose first caller is inside, and whose hold has had a fixed lease besides: the
// others cannot be served under the same owner, and so its Unlock enters them anew. Each has a context of its own.
func left(t *testing.T, ctx context.Context, m, fair *fairlock.Mutex, n int) (inside locked, rest []<-chan locked,
	leave []func()) {
	t.Helper()
	first := lock(t, ctx, m)
	next := goQueued(t, ctx, fair, 1)
	for i := range n {
		brief, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		rest, leave = append(rest, goQueued(t, brief, fair, i+2)), append(leave, cancel)
	}
	unlock(t, first)
	inside = granted(t, next, patience, "the first of the run")
	unlock(t, lock(t, inside.ctx, fair, rlock.Lease(time.Minute)))
	return inside, rest, leave
}

// cycle locks and unlocks, and returns how long Lock has taken.
func cycle(t *testing.T, ctx context.Context, m *fairlock.Mutex) time.Duration {
	t.Helper()
	began := time.Now()
	l := lock(t, ctx, m)
	took := time.Since(began)
	unlock(t, l)
	return took
}

func goUnlock(l locked) <-chan error {
	c := make(chan error, 1)
	go func() { c <- l.hold.Unlock() }()
	return c
}

// tokensGrow: these are let in, one after the other, each with a token behind that of the one before, and all behind last.
func tokensGrow(t *testing.T, last int64, run []<-chan locked) {
	t.Helper()
	for _, c := range run {
		l := granted(t, c, patience, "the next one")
		if l.hold.Token() <= last {
			t.Errorf("token %d behind %d", l.hold.Token(), last)
		}
		last = l.hold.Token()
		unlock(t, l)
	}
}

// The answer to a release that has entered a run comes late, and a caller of that run leaves meanwhile. The one
// that has the lock by then keeps it.
func TestALateAnswerToAReleaseLeavesTheRunThatItEntered(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m := fairlock.New(dial(t, s, silent()), "x")
		b, client := locktest.DialGated(t, s, silent())
		fair := fairlock.New(b, "x")
		inside, rest, leave := left(t, ctx, m, fair, 2)
		seen, release := client.HoldAnswer(runs("release"))
		t.Cleanup(release)
		ends := goUnlock(inside)
		locktest.Get(t, seen, patience, "the release has run")
		leave[1]()
		is(t, "the waiter that leaves", locktest.Get(t, rest[1], patience, "Lock returns").err, context.Canceled)
		pause(200 * time.Millisecond)
		release()
		must(t, locktest.Get(t, ends, patience, "Unlock returns"))
		l := granted(t, rest[0], patience, "the one that is left")
		pause(300 * time.Millisecond)
		_, h, err := m.TryLock(ctx)
		if err == nil {
			t.Error("another has the lock besides", h.Owner())
		}
		is(t, "TryLock of another", err, rlock.ErrNotAcquired)
		unlock(t, l)
		nothingLeft(t, s)
	})
}

// All callers of such a run leave while the release is on its way, whose answer is lost: nothing is left behind.
func TestARunThatALostReleaseEnteredLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m := fairlock.New(dial(t, s, silent()), "x")
		p := newProxy(t, s)
		b := dialVia(t, s, p, silent())
		inside, rest, leave := left(t, ctx, m, fairlock.New(b, "x"), 1)
		p.DropReply(runs("release"))
		seen, release := p.HoldReply(runs("release")) // when it is sent again
		t.Cleanup(release)
		ends := goUnlock(inside)
		locktest.Get(t, seen, patience, "the release has run")
		leave[0]()
		is(t, "the waiter that leaves", locktest.Get(t, rest[0], patience, "Lock returns").err, context.Canceled)
		release()
		must(t, locktest.Get(t, ends, patience, "Unlock returns"))
		l := lock(t, ctx, m)
		unlock(t, l)
		nothingLeft(t, s)
	})
}

// The same where the hold is lost, so that the release enters nobody: the run is over, and later callers wait for
// none to gather.
func TestARunThatNoReleaseEnteredLeavesNothing(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m := fairlock.New(dial(t, s, silent()), "x")
		cfg, renewed := silent(), make(chan struct{}, 100)
		cfg.Trace = &rlock.Trace{Renewed: func(locktrace.Renewed) { renewed <- struct{}{} }}
		b, client := locktest.DialGated(t, s, cfg)
		fair := fairlock.New(b, "x")
		inside, rest, leave := left(t, ctx, m, fair, 1)
		locktest.Get(t, renewed, patience, "what was granted is confirmed") // else that may notice the loss first
		must(t, s.Do(t, "DEL", "x").Error())
		seen, release := client.HoldAnswer(runs("release"))
		t.Cleanup(release)
		ends := goUnlock(inside)
		locktest.Get(t, seen, patience, "the release has run")
		leave[0]()
		is(t, "the waiter that leaves", locktest.Get(t, rest[0], patience, "Lock returns").err, context.Canceled)
		release()
		is(t, "Unlock", locktest.Get(t, ends, patience, "Unlock returns"), rlock.ErrLost)
		// In made-up time both take none; on a real server the other lock says what the machine needs for one.
		other, least, leastOther := fairlock.New(b, "another"), time.Hour, time.Hour
		for range 50 {
			least, leastOther = min(least, cycle(t, ctx, fair)), min(leastOther, cycle(t, ctx, other))
		}
		if least >= leastOther+2*time.Millisecond {
			t.Errorf("a Lock takes %v at least, and %v where there was no run: it waits for others of a run that is over",
				least, leastOther)
		}
		nothingLeft(t, s)
	})
}

// A session that may not subscribe hears of no message: callers that its own release has entered anew are served at
// once all the same.
func TestARunOfADeafSessionIsServedAtOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		redistest.SkipShort(t) // until a look
		ctx := within(t, 2*time.Minute)
		proxy := newProxy(t, s)
		proxy.RefuseCommand("SUBSCRIBE", "NOPERM no channels for you")
		cfg := rlock.Config{Lease: time.Hour, QueueLease: 3 * time.Minute, PollFloor: 8 * time.Second}
		fair := fairlock.New(dialVia(t, s, proxy, cfg), "x")
		other := lock(t, ctx, fairlock.New(dial(t, s, silent()), "x"))
		one := goQueued(t, ctx, fair, 1)
		two := goQueued(t, ctx, fair, 2)
		unlock(t, other)
		l := granted(t, one, time.Minute, "the first of the run")
		unlock(t, lock(t, l.ctx, fair, rlock.Lease(time.Minute))) // so that the claim is not passed on
		began := time.Now()
		unlock(t, l)
		l = granted(t, two, time.Minute, "the second")
		if d := l.at.Sub(began); d >= cfg.PollFloor/2 {
			t.Errorf("it took %v, as long as till a look", d)
		}
		unlock(t, l)
		nothingLeft(t, s)
	})
}

// Fencing tokens of a session that hears nothing grow too, whichever session's script draws them.
func TestTokensOfADeafSessionGrow(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		proxy := newProxy(t, s)
		proxy.RefuseCommand("SUBSCRIBE", "NOPERM no channels for you")
		fair := fairlock.New(dialVia(t, s, proxy, short(s)), "x", rlock.Fenced())
		other := lock(t, ctx, fairlock.New(dial(t, s, silent()), "x", rlock.Fenced()))
		last := other.hold.Token()
		run := []<-chan locked{goLock(ctx, fair), goLock(ctx, fair), goLock(ctx, fair)}
		queued(t, fair, 3)
		unlock(t, other)
		for range run {
			var l locked
			select {
			case l = <-run[0]:
			case l = <-run[1]:
			case l = <-run[2]:
			}
			must(t, l.err)
			if l.hold.Token() <= last {
				t.Errorf("token %d behind %d", l.hold.Token(), last)
			}
			last = l.hold.Token()
			unlock(t, l)
		}
	})
}

// Redis has no memory when a release is to enter the callers that are left of a run, and lets it write only when it
// has let another session in. It draws a token for each of them all the same, when it lets them in.
func TestTokensOfARunThatEnteredWithoutMemoryGrow(t *testing.T) {
	t.Parallel()
	master, _ := redistest.NewReplicas(t, 1)
	ctx := within(t, time.Minute)
	m := fairlock.New(dial(t, master, silent()), "x", rlock.Fenced())
	cfg := silent()
	cfg.Replicas, cfg.HandOverLimit = 1, 1 // so that the session asks about what it is given, and hands it over once
	fair := fairlock.New(dial(t, master, cfg), "x", rlock.Fenced())
	first := lock(t, ctx, m)
	var run []<-chan locked
	for i := range 8 {
		run = append(run, goQueued(t, ctx, fair, 1+i))
	}
	between := goQueued(t, ctx, m, 9)
	unlock(t, first)
	l := granted(t, run[0], patience, "the first of the run")
	must(t, master.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	unlock(t, l)
	for run = run[1:]; ; run = run[1:] { // as many as it hands over to
		select {
		case l = <-between:
			must(t, l.err)
		case l = <-run[0]:
			must(t, l.err)
			unlock(t, l)
			continue
		}
		break
	}
	must(t, master.Do(t, "CONFIG", "SET", "maxmemory", "0").Error())
	last := l.hold.Token()
	unlock(t, l)
	tokensGrow(t, last, run)
}

// A release has entered a run of two callers, which was given the lock for one of them, by a server that had no memory to
// note how many they are; and no message says so. The session asks for two tokens, and does not take one that another
// owner has been given for one of them.
func TestTokensOfARunThatWasGivenFewerGrow(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		p := newProxy(t, s)
		fair := fairlock.New(dialVia(t, s, p, short(s)), "x", rlock.Fenced())
		other := fairlock.New(dial(t, s, silent()), "x", rlock.Fenced())
		inside, rest, _ := left(t, ctx, other, fair, 2)
		last, err := s.Do(t, "GET", "redisson_lock_token:{x}").AsInt64() // has been given to others
		must(t, err)
		p.DropMessages(true)
		unlock(t, inside)
		must(t, s.Do(t, "DECR", "redisson_lock_token:{x}").Error())
		tokensGrow(t, last, rest)
	})
}
