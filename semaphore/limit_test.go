package semaphore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// The first user sets the limit, what Redis holds wins over other handles' ideas of it, and
// SetLimit changes it for everybody.
func TestLimit(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 3)
		available(t, ctx, m, 3)
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("asking made %q", keys)
		}
		_, p, err := m.Acquire(ctx, 2)
		must(t, err)
		if p.N() != 2 || value(t, s, "x") != "1" || taken(t, s, "x") != 2 {
			t.Errorf("N %d; %s", p.N(), locktest.Describe(t, s))
		}
		other := semaphore.New(ses, "x", 10)
		available(t, ctx, other, 1)
		for _, n := range []int{4, 11} { // below and above what the handle thinks
			_, _, err = other.TryAcquire(ctx, n)
			is(t, "more than the limit", err, semaphore.ErrLimit)
			_, _, err = other.Acquire(ctx, n)
			is(t, "more than the limit", err, semaphore.ErrLimit)
			is(t, "Do", other.Do(ctx, n, func(context.Context) error { return nil }), semaphore.ErrLimit)
		}
		if !strings.Contains(err.Error(), "the limit 3") {
			t.Errorf("the error does not tell the limit: %v", err)
		}
		must(t, other.SetLimit(ctx, 5))
		available(t, ctx, m, 3)
		must(t, other.SetLimit(ctx, 5))
		available(t, ctx, m, 3)
		must(t, other.SetLimit(ctx, 1)) // below what is taken
		available(t, ctx, m, 0)
		_, _, err = m.TryAcquire(ctx, 1)
		is(t, "none is free", err, rlock.ErrNotAcquired)
		must(t, p.Release())
		available(t, ctx, m, 1)
		must(t, other.SetLimit(ctx, 0))
		_, _, err = m.Acquire(ctx, 1)
		is(t, "a limit of 0", err, semaphore.ErrLimit)
		// Raised by somebody else: a handle that has heard of less asks again.
		must(t, semaphore.New(ses, "x", 1).SetLimit(ctx, 50))
		_, p, err = m.TryAcquire(ctx, 50)
		must(t, err)
		must(t, p.Release())
	})
}

// A request for more than the limit fails at once also when others of the session wait in
// front of it (R26), whether the limit was this handle's, or was heard of.
func TestTooMuchIsRefusedAtOnceBehindWaiters(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses := dial(t, s, cfg)
		ctx := within(t, 20*time.Second)
		m, high := semaphore.New(ses, "x", 2), semaphore.New(ses, "x", 9)
		_, p, err := m.Acquire(ctx, 2)
		must(t, err)
		available(t, ctx, high, 0) // high has heard of the limit now
		waiter := acquire(ctx, m, 1)
		locktest.Get(t, waiting, 10*time.Second, "the waiter")
		for _, m := range []*semaphore.Semaphore{m, high} {
			_, _, err = m.Acquire(ctx, 3)
			is(t, "behind a waiter", err, semaphore.ErrLimit)
			_, _, err = m.TryAcquire(ctx, 3)
			is(t, "behind a waiter", err, semaphore.ErrLimit)
		}
		must(t, p.Release())
		g := locktest.Get(t, waiter, 10*time.Second, "the waiter's permit")
		must(t, g.err)
		must(t, g.p.Release())
	})
}

// Waiters learn of a new limit at once: those that may go on, and those that now ask for
// too much.
func TestSetLimitTellsWaiters(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ctx := within(t, 20*time.Second)
		m, other := semaphore.New(dial(t, s, cfg), "x", 3), semaphore.New(dial(t, s, slow()), "x", 3)
		_, p, err := other.Acquire(ctx, 1)
		must(t, err)
		wait := func(n int) <-chan got {
			w := acquire(ctx, m, n)
			locktest.Get(t, waiting, 10*time.Second, "the waiter")
			return w
		}
		w := wait(3)
		must(t, other.SetLimit(ctx, 4))
		g := locktest.Get(t, w, 10*time.Second, "the waiter's permits")
		must(t, g.err)
		w = wait(4)
		must(t, other.SetLimit(ctx, 2))
		is(t, "more than the new limit", locktest.Get(t, w, 10*time.Second, "the waiter's end").err, semaphore.ErrLimit)
		must(t, g.p.Release())
		must(t, p.Release())
		available(t, ctx, m, 2)
	})
}

// Those behind the first of a session hear of a limit that was lowered elsewhere when he
// does, and those who come later without having heard of it at once (R26). No release is
// needed for that, and he waits on.
func TestLoweredLimitTellsThoseBehind(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ctx := within(t, 20*time.Second)
		ses := dial(t, s, cfg)
		m, other := semaphore.New(ses, "x", 5), semaphore.New(dial(t, s, slow()), "x", 5)
		_, p, err := other.Acquire(ctx, 5)
		must(t, err)
		var all []<-chan got
		for _, n := range []int{1, 2, 4, 1, 5} {
			all = append(all, acquire(ctx, m, n))
			locktest.Get(t, waiting, 10*time.Second, "a waiter")
		}
		must(t, other.SetLimit(ctx, 2))
		for i, want := range []bool{false, false, true, false, true} {
			if want {
				is(t, "behind", locktest.Get(t, all[i], 10*time.Second, "one who wants too much").err, semaphore.ErrLimit)
			}
		}
		late := acquire(ctx, semaphore.New(ses, "x", 5), 3)
		is(t, "late", locktest.Get(t, late, 10*time.Second, "one who came later").err, semaphore.ErrLimit)
		for _, i := range []int{0, 1, 3} {
			waits(t, "one who does not want too much", all[i])
		}
		must(t, p.Release())
		for _, i := range []int{0, 1, 3} {
			g := locktest.Get(t, all[i], 10*time.Second, "a permit")
			must(t, g.err)
			must(t, g.p.Release())
		}
		available(t, ctx, m, 2)
	})
}

// The one in front hears of a lower limit after others have come. It may have been raised
// before they came, and then it is not held against them; so he asks again, without having
// been woken.
func TestStaleLimitIsHeldAgainstNobody(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, raised := range []bool{false, true} {
			staleLimit(t, s, fmt.Sprint("x", raised), raised)
		}
	})
}

func staleLimit(t *testing.T, s *redistest.Server, name string, raised bool) {
	trace, waiting := locktest.Waiting()
	asked := make(chan struct{}, 100)
	trace.Attempt = func(locktrace.Attempt) { asked <- struct{}{} }
	cfg := slow()
	cfg.Trace = trace
	ses, p := locktest.DialProxy(t, s, cfg)
	ctx := within(t, 20*time.Second)
	other := semaphore.New(dial(t, s, slow()), name, 5)
	_, held, err := other.Acquire(ctx, 5)
	must(t, err)
	first := acquire(ctx, semaphore.New(ses, name, 5), 2)
	locktest.Get(t, waiting, 10*time.Second, "the first")
	for range 2 { // the first of the line asks again when it listens
		locktest.Get(t, asked, 10*time.Second, "the first to have asked")
	}
	seen, release := p.HoldReply(locktest.Runs(src["acquire"]))
	must(t, other.SetLimit(ctx, 2))
	locktest.Get(t, seen, 10*time.Second, "the answer to the first")
	p.DropMessages(true)
	if raised {
		must(t, other.SetLimit(ctx, 6))
	}
	second := acquire(ctx, semaphore.New(ses, name, 6), 4)
	locktest.Get(t, waiting, 10*time.Second, "the second")
	release()
	redistest.Eventually(t, 10*time.Second, "the first to ask anew", func() bool {
		return locktest.Sent(p, locktest.Runs(src["acquire"])) >= 4 // try, try, the old limit, the new one
	})
	p.DropMessages(false)
	if !raised {
		is(t, "the second", locktest.Get(t, second, 10*time.Second, "its end").err, semaphore.ErrLimit)
	}
	must(t, held.Release())
	in := []<-chan got{first, second}
	if !raised {
		in = in[:1]
	}
	for _, c := range in {
		g := locktest.Get(t, c, 10*time.Second, "the permits")
		must(t, g.err)
		must(t, g.p.Release())
	}
}
