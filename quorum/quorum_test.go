package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/quorum"
	"relock/rlock"
)

// One owner at a time; all nodes give their votes in the end, and all get them back.
func TestOneOwner(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, 20*time.Second)
		mine, theirs := quorum.New(dial(t, all, slow()), "x"), quorum.New(dial(t, all, slow()), "x")
		section, h, err := mine.TryLock(ctx)
		must(t, err)
		votes(t, h, 5)
		if left := h.Remaining(); left < 59*time.Minute || left > time.Hour {
			t.Errorf("it can be trusted for %v", left)
		}
		inner, h2, err := theirs.TryLock(ctx)
		if is(t, "TryLock", err, rlock.ErrNotAcquired); inner != ctx || h2 != nil {
			t.Error("TryLock returns a section or a hold beside its error")
		}
		_, _, err = theirs.Lock(ctx, rlock.Wait(30*time.Millisecond))
		is(t, "Wait", err, rlock.ErrNotAcquired)
		if section.Err() != nil {
			t.Errorf("the section has ended: %v", context.Cause(section))
		}
		must(t, h.Unlock())
		ends(t, section, 10*time.Second, rlock.ErrReleased)
		is(t, "a second Unlock", h.Unlock(), rlock.ErrNotHeld)
		if h.Votes() != 0 || h.Remaining() != 0 {
			t.Errorf("after Unlock: %d votes, %v", h.Votes(), h.Remaining())
		}
		must(t, theirs.Do(ctx, func(ctx context.Context) error { return ctx.Err() }))
		redistest.Eventually(t, 10*time.Second, "nothing to be left", func() bool {
			for _, s := range all {
				if keys := s.Keys(t); len(keys) != 1 || keys[0] != lifeKey {
					return false
				}
			}
			return true
		})
	})
}

// A waiter gets in when the lock is released: it hears of it, and does not look by the clock at
// that time. Then those behind it get in.
func TestWaiterHears(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, time.Minute)
		var rounds atomic.Int32
		cfg := slow()
		cfg.Trace = &rlock.Trace{Attempt: func(locktrace.Attempt) { rounds.Add(1) }}
		mine, theirs := quorum.New(dial(t, all, slow()), "x"), quorum.New(dial(t, all, cfg), "x")
		_, h := lock(t, ctx, mine)
		type result struct {
			h   *quorum.Hold
			err error
		}
		got := make(chan result, 3)
		for range cap(got) {
			go func() {
				_, h, err := theirs.Lock(ctx)
				got <- result{h, err}
			}()
		}
		redistest.Eventually(t, 40*time.Second, "the waiter to look seldom", func() bool {
			return rounds.Load() > 50 // from now on it sleeps for 5 s and more
		})
		must(t, h.Unlock())
		r := locktest.Get(t, got, 4*time.Second, "the turn of the first")
		must(t, r.err)
		must(t, r.h.Unlock())
		for range cap(got) - 1 {
			r := locktest.Get(t, got, 10*time.Second, "its turn")
			must(t, r.err)
			must(t, r.h.Unlock())
		}
	})
}

// A section ends when its session's Close leaves no majority of votes; before, a closed session
// is a lost vote.
func TestClose(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, 20*time.Second)
		sessions := dial(t, all, slow())
		m := quorum.New(sessions, "x")
		section, h := lock(t, ctx, m)
		votes(t, h, 5)
		must(t, sessions[0].Close())
		must(t, sessions[1].Close())
		votes(t, h, 3)
		if section.Err() != nil {
			t.Fatalf("the section has ended: %v", context.Cause(section))
		}
		must(t, h.Unlock())
		section, h = lock(t, ctx, m)
		must(t, sessions[2].Close())
		ends(t, section, 10*time.Second, rlock.ErrClosed)
		is(t, "Unlock", h.Unlock(), rlock.ErrClosed)
		_, _, err := m.Lock(ctx)
		is(t, "Lock", err, rlock.ErrClosed)
	})
}

// Unlock of a section that has ended for lack of votes says so, though it does not wait for the
// answers of all. Which come first is chance.
func TestLostWhateverAnswersFirst(t *testing.T) {
	all := cluster(t, 5, mini)
	ctx := within(t, time.Minute)
	sessions, others := dial(t, all, slow()), dial(t, all[:3], slow())
	for i := range 50 {
		name := fmt.Sprint(i)
		m := quorum.New(sessions, name)
		section, h := lockAll(t, ctx, m, 5)
		for _, other := range others {
			_, err := rlock.New(other, name).ForceUnlock(ctx)
			must(t, err)
		}
		ends(t, section, 10*time.Second, rlock.ErrLost)
		h.BoundRelease(0)
		is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	}
}

// The lock is released however Do ends.
func TestDo(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, 20*time.Second)
		m := quorum.New(dial(t, all, slow()), "x")
		errMine := errors.New("mine")
		is(t, "Do", m.Do(ctx, func(context.Context) error { return errMine }), errMine)
		free(t, ctx, m)
		func() {
			defer func() { _ = recover() }()
			_ = m.Do(ctx, func(context.Context) error { panic("fn") })
		}()
		free(t, ctx, m)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = m.Do(ctx, func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-done
		free(t, ctx, m)
	})
}

// A plain mutex of that name on one node has that node's vote.
func TestPlainMutex(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, 20*time.Second)
		sessions := dial(t, all, slow())
		m := quorum.New(sessions, "x")
		for _, ses := range sessions[:2] {
			_, _, err := rlock.New(ses, "x").Lock(ctx)
			must(t, err)
		}
		_, h := lock(t, ctx, m)
		must(t, h.Unlock())
		_, plain, err := rlock.New(sessions[2], "x").Lock(ctx)
		must(t, err)
		taken(t, ctx, m)
		must(t, plain.Unlock())
		free(t, ctx, m)
	})
}

// Retry is a series of rounds; sessions that poll look as their Backoff says.
func TestRetry(t *testing.T) {
	all := cluster(t, 3, mini)
	ctx := within(t, 20*time.Second)
	var rounds []int
	cfg := slow()
	polls, stop := context.WithCancel(ctx)
	defer stop()
	cfg.Polling = func(n int) time.Duration {
		if rounds = append(rounds, n); n == 3 {
			stop()
		}
		return time.Millisecond
	}
	sessions := dial(t, all, cfg)
	mine, theirs := quorum.New(dial(t, all, slow()), "x"), quorum.New(sessions, "x")
	_, h := lock(t, ctx, mine)
	for _, lock := range []func(context.Context, ...rlock.LockOption) (context.Context, *quorum.Hold, error){mine.TryLock, mine.Lock} {
		n := 0
		_, _, err := lock(ctx, rlock.Retry(func(i int) time.Duration {
			if n = i; i == 3 {
				return -1
			}
			return time.Millisecond
		}))
		if is(t, "three rounds", err, rlock.ErrNotAcquired); n != 3 {
			t.Errorf("gave up in round %d", n)
		}
	}
	rounds = nil
	_, _, err := theirs.Lock(polls)
	if is(t, "polling", err, rlock.ErrNotAcquired, context.Canceled); !slices.Equal(rounds, []int{1, 2, 3}) {
		t.Errorf("asked for the sleeps %v", rounds)
	}
	must(t, h.Unlock())
	free(t, ctx, theirs)
}

// A series of attempts ends when its Backoff does, also while another caller of the handle waits.
func TestRetryStandsInNoQueue(t *testing.T) {
	all := cluster(t, 3, mini)
	ctx := within(t, 20*time.Second)
	cfg := slow()
	asked := make(chan struct{}, 1000)
	cfg.Trace = &rlock.Trace{Attempt: func(locktrace.Attempt) { asked <- struct{}{} }}
	mine, theirs := quorum.New(dial(t, all, slow()), "x"), quorum.New(dial(t, all, cfg), "x")
	_, h := lock(t, ctx, mine)
	waiting, end := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() {
		_, _, err := theirs.Lock(waiting)
		left <- err
	}()
	locktest.Get(t, asked, 10*time.Second, "the waiter to ask")
	_, _, err := theirs.TryLock(ctx, rlock.Retry(rlock.Limit(rlock.Linear(time.Millisecond), 3)))
	if is(t, "Retry", err, rlock.ErrNotAcquired); ctx.Err() != nil {
		t.Errorf("it has waited for the other caller: %v", err)
	}
	end()
	is(t, "the waiter", locktest.Get(t, left, 10*time.Second, "the waiter to leave"), context.Canceled)
	must(t, h.Unlock())
}

// A vote that is given while the lock is being released is given back too.
func TestLateVotes(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, time.Minute)
		m := quorum.New(dial(t, all, slow()), "x")
		rounds := 300
		if testing.Short() {
			rounds /= 3
		}
		for began := time.Now(); rounds > 0 && time.Since(began) < 15*time.Second; rounds-- { // fewer on a busy machine
			must(t, m.Do(ctx, func(context.Context) error { return nil }))
		}
		for _, s := range all {
			redistest.Eventually(t, 10*time.Second, "the lock to be gone", func() bool { return len(s.Keys(t)) == 1 })
		}
	})
}

// Without contention each node gets one script to take and one to release, and no more.
func TestCost(t *testing.T) {
	all := cluster(t, 3, real)
	ctx := within(t, 20*time.Second)
	m := quorum.New(dial(t, all, slow()), "x")
	warm(t, ctx, m, all)
	for _, s := range all {
		s.ResetStats(t)
	}
	_, h := lock(t, ctx, m)
	votes(t, h, 3)
	must(t, h.Unlock())
	for _, s := range all {
		if n := s.Commands(t)["evalsha"]; n != 2 {
			t.Errorf("sent %d scripts: %v", n, s.Commands(t))
		}
	}
}

// A context that was cancelled for another reason keeps that as its cause, and Unlock works.
func TestCallersContext(t *testing.T) {
	all := cluster(t, 3, real)
	ctx := within(t, 20*time.Second)
	m := quorum.New(dial(t, all, slow()), "x")
	errMine := errors.New("mine")
	own, cancel := context.WithCancelCause(ctx)
	section, h := lock(t, own, m)
	cancel(errMine)
	ends(t, section, 10*time.Second, errMine)
	taken(t, ctx, m)
	must(t, h.Unlock())
	free(t, ctx, m)
}
