package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Never are more permits held than the limit, counted outside the semaphore, by many
// goroutines of many sessions, each with requests of its own size; and Redis has the limit
// again when all are done. Waiters are woken by messages and by the caller that was let in before
// them, and by nothing else: no wake-up may be lost.
func TestNeverMoreThanTheLimit(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 2*time.Minute)
		const limit, sessions, each = 5, 4, 32
		rounds := 20
		switch {
		case testing.Short():
			rounds = 1
		case s.IsMini():
			rounds = 3
		}
		var inside, most, entered atomic.Int64
		var wg sync.WaitGroup
		var all []*rlock.Session
		for range sessions {
			ses := dial(t, s, slow())
			all = append(all, ses)
			for g := range each {
				m := semaphore.New(ses, "x", limit)
				n := g%3 + 1
				wg.Go(func() {
					for range rounds {
						err := m.Do(ctx, n, func(section context.Context) error {
							now := inside.Add(int64(n))
							if now > limit {
								t.Errorf("%d inside", now)
							}
							for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
							}
							entered.Add(1)
							runtime.Gosched()
							inside.Add(-int64(n))
							return section.Err()
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		if entered.Load() != int64(sessions*each*rounds) || most.Load() < 2 {
			t.Errorf("%d entered, %d at most at a time", entered.Load(), most.Load())
		}
		// Permits of an attempt that a busy machine has answered too late are given back behind it.
		redistest.Eventually(t, 20*time.Second, "all permits to be back", func() bool { return locktest.Describe(t, s) == "x=5" })
		silent(t, s, all...)
	})
}

// silent waits until nobody listens any more, except the sessions to their own channels.
func silent(t testing.TB, s *redistest.Server, all ...*rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "no channel but the sessions' own", func() bool {
		return len(s.Channels(t)) == len(all)
	})
}

// A release of k lets in enough for k, in one session and in several (R26): with no other
// clock than messages.
func TestReleaseOfManyWakesEnough(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		holder := semaphore.New(dial(t, s, slow()), "x", 6)
		_, p, err := holder.Acquire(ctx, 6)
		must(t, err)
		in := make(chan got, 100)
		const sessions, each = 3, 4
		for range sessions {
			trace, waiting := locktest.Waiting()
			cfg := slow()
			cfg.Trace = trace
			m := semaphore.New(dial(t, s, cfg), "x", 6)
			for range each {
				go func() { in <- <-acquire(ctx, m, 1) }()
			}
			for range each {
				locktest.Get(t, waiting, 10*time.Second, "everybody to wait")
			}
		}
		awaitInLine(t, s, "x", sessions)
		awaitListener(t, s, "x")
		must(t, p.Release())
		var held []*semaphore.Permits
		for range 6 {
			g := locktest.Get(t, in, 10*time.Second, "six of the waiters to get in")
			must(t, g.err)
			held = append(held, g.p)
		}
		if value(t, s, "x") != "0" {
			t.Errorf("%s are free", value(t, s, "x"))
		}
		waits(t, "the seventh", in)
		for range 6 { // one out, one in
			must(t, held[0].Release())
			g := locktest.Get(t, in, 10*time.Second, "one more to get in")
			must(t, g.err)
			held = append(held[1:], g.p)
		}
		for _, p := range held {
			must(t, p.Release())
		}
		// A permit that a message has given to a session whose callers have all got theirs comes back in the background.
		redistest.Eventually(t, 10*time.Second, "all six to be free", func() bool { return locktest.Describe(t, s) == "x=6" })
	})
}

// A large request is served before small ones that came later in the same session, TryAcquire
// included, and before those that come while it waits.
func TestLargeRequestIsNotStarved(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses := dial(t, s, cfg)
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 3)
		var held [3]*semaphore.Permits
		for i := range held {
			_, p, err := m.Acquire(ctx, 1)
			must(t, err)
			held[i] = p
		}
		large := acquire(ctx, m, 3)
		locktest.Get(t, waiting, 10*time.Second, "the large one to wait")
		small := acquire(ctx, m, 1)
		locktest.Get(t, waiting, 10*time.Second, "the small one to wait")
		for i := range held {
			must(t, held[i].Release())
			if i == 2 {
				break
			}
			if free := value(t, s, "x"); free != fmt.Sprint(i+1) {
				t.Fatalf("%s are free", free)
			}
			_, _, err := m.TryAcquire(ctx, 1)
			is(t, "TryAcquire behind a large request", err, rlock.ErrNotAcquired)
			_, _, err = m.Acquire(ctx, 1, rlock.Wait(0))
			is(t, "Wait(0) behind a large request", err, rlock.ErrNotAcquired)
			waits(t, "the large one", large)
			waits(t, "the small one", small)
		}
		g := locktest.Get(t, large, 10*time.Second, "the large one's permits")
		must(t, g.err)
		waits(t, "the small one", small)
		must(t, g.p.Release())
		g = locktest.Get(t, small, 10*time.Second, "the small one's permit")
		must(t, g.err)
		must(t, g.p.Release())
	})
}

// When a large request that stood in front gives up, what it left is for those behind it.
func TestLargeRequestThatGivesUpLetsTheNextIn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace})
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 2)
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		largeCtx, cancel := context.WithCancel(ctx)
		large := acquire(largeCtx, m, 2)
		locktest.Get(t, waiting, 10*time.Second, "the large one to wait")
		small := acquire(ctx, m, 1)
		locktest.Get(t, waiting, 10*time.Second, "the small one to wait")
		cancel()
		is(t, "the large one", locktest.Get(t, large, 10*time.Second, "the large one to give up").err, rlock.ErrNotAcquired, context.Canceled)
		g := locktest.Get(t, small, 5*time.Second, "the small one's permit")
		must(t, g.err)
		must(t, g.p.Release())
		must(t, p.Release())
	})
}

// Owners are values: no goroutine owns a permit, a semaphore does not hide the owner of the
// lock around it, and a nested Acquire takes further permits (R28).
func TestPermitsHaveOwnersOfTheirOwn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 3)
		section, h, err := rlock.New(ses, "lock").Lock(rlock.WithOwner(ctx, "me"))
		must(t, err)
		section, p, err := m.Acquire(section, 1)
		must(t, err)
		if id, ok := rlock.OwnerFrom(section); !ok || id != "me" || h.Owner() != "me" || p.Owner() == "me" {
			t.Errorf("owner %q inside, %q outside; the permits' is %q", id, h.Owner(), p.Owner())
		}
		_, again, err := rlock.New(ses, "lock").TryLock(section)
		must(t, err)
		_, more, err := m.TryAcquire(section, 2)
		must(t, err)
		_, _, err = m.TryAcquire(section, 1)
		is(t, "a fourth", err, rlock.ErrNotAcquired)
		must(t, locktest.Get(t, start(more.Release), 10*time.Second, "a release by another goroutine"))
		must(t, again.Unlock())
		must(t, p.Release())
		must(t, h.Unlock())
		named := rlock.WithOwner(ctx, "me")
		_, one, err := m.Acquire(named, 1)
		must(t, err)
		_, two, err := m.Acquire(named, 1)
		must(t, err)
		if one.Owner() == two.Owner() {
			t.Error("two acquisitions share an owner")
		}
		must(t, one.Release())
		must(t, two.Release())
	})
}

// Do releases when fn returns, fails, panics and calls Goexit, and tells of a loss (R11).
func TestDo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 2)
		oops := errors.New("oops")
		is(t, "Do", m.Do(ctx, 2, func(context.Context) error { available(t, ctx, m, 0); return oops }), oops)
		available(t, ctx, m, 2)
		func() {
			defer func() {
				if r := recover(); r != oops {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = m.Do(ctx, 2, func(context.Context) error { panic(oops) })
		}()
		available(t, ctx, m, 2)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = m.Do(ctx, 2, func(context.Context) error { runtime.Goexit(); return nil })
		}()
		locktest.Get(t, done, 10*time.Second, "Goexit")
		available(t, ctx, m, 2)
		err := m.Do(ctx, 1, func(context.Context) error { s.FlushAll(t); return oops })
		is(t, "Do of what is lost", err, oops, rlock.ErrLost)
	})
}

// A waiter that gives up leaves nothing, and says why.
func TestGivingUp(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 1)
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		before := locktest.Describe(t, s)
		_, _, err = m.Acquire(ctx, 1, rlock.Wait(20*time.Millisecond))
		is(t, "Wait", err, rlock.ErrNotAcquired)
		short, cancel := context.WithTimeout(ctx, s.Slowed(50*time.Millisecond))
		defer cancel()
		got, none, err := m.Acquire(short, 1)
		is(t, "deadline", err, rlock.ErrNotAcquired, context.DeadlineExceeded)
		if got != short || none != nil {
			t.Error("a failed Acquire must return the context that it was given, and no permits")
		}
		_, _, err = m.Acquire(short, 1)
		if is(t, "done before", err, context.DeadlineExceeded); errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("done before: %v", err)
		}
		if got := locktest.Describe(t, s); got != before {
			t.Errorf("Redis has %s", got)
		}
		silent(t, s, ses)
		must(t, p.Release())
	})
}
