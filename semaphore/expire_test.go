package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// live checks for how long the keys will live, counted from some moment since began. How many
// seconds ago that was does not matter.
func live(t testing.TB, s *redistest.Server, what string, began time.Time, want time.Duration, keys ...string) {
	t.Helper()
	for _, key := range keys {
		ms, err := s.Do(t, "PTTL", key).AsInt64()
		must(t, err)
		const rounding = 500 * time.Millisecond
		got := time.Duration(ms) * time.Millisecond
		if got > want+rounding || got < want-time.Since(began)-rounding {
			t.Errorf("%s: %s lives for %v, want %v", what, key, got, want)
		}
	}
}

// forever checks that the keys have no end.
func forever(t testing.TB, s *redistest.Server, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if ms, err := s.Do(t, "PTTL", key).AsInt64(); err != nil || ms != -1 {
			t.Errorf("%s: PTTL %d, %v; want -1", key, ms, err)
		}
	}
}

// Every use of a semaphore with an end renews it, and a lease that is longer keeps it for as long.
func TestSemaphoreWithAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: 30 * time.Second})
		ctx := within(t, time.Hour)
		m := semaphore.New(ses, "x", 3, semaphore.Expire(time.Minute))
		began := time.Now()
		renewed := func(what string, want time.Duration, keys ...string) {
			t.Helper()
			live(t, s, what, began, want, keys...)
			began = time.Now()
			must(t, s.Do(t, "PEXPIRE", "x", "10000").Error())
		}
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		renewed("acquired", time.Minute, "x", zset("x"))
		must(t, p.Release())
		renewed("released", time.Minute, "x")
		must(t, s.Do(t, "PERSIST", "x").Error()) // as one that another process has made without an end
		_, p, err = m.Acquire(ctx, 1)
		must(t, err)
		renewed("acquired again", time.Minute, "x", zset("x"))
		must(t, m.SetLimit(ctx, 5))
		renewed("SetLimit", time.Minute, "x", zset("x"))
		must(t, m.SetLimit(ctx, 5))
		renewed("the same SetLimit", time.Minute, "x", zset("x"))
		_, long, err := m.Acquire(ctx, 1, rlock.Lease(5*time.Minute))
		must(t, err)
		renewed("a longer lease", 5*time.Minute+time.Second, "x", zset("x"))
		must(t, long.Extend(ctx, 10*time.Minute))
		renewed("extended", 10*time.Minute+time.Second, "x", zset("x"))
		must(t, m.ExtendByID(ctx, 20*time.Minute, long.IDs()...))
		renewed("extended by id", 20*time.Minute+time.Second, "x", zset("x"))
		must(t, m.ReleaseByID(ctx, long.IDs()...))
		renewed("released by id", time.Minute, "x", zset("x"))
		must(t, p.Release())
	})
}

// A lease that is longer than Expire keeps a semaphore for as long as permits are held, and no longer: its end counts from the
// last release.
func TestTheEndOfASemaphoreCountsFromTheLastRelease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Hour)
		m := semaphore.New(dial(t, s, rlock.Config{}), "x", 3, semaphore.Expire(5*time.Second))
		for name, release := range map[string]func(*semaphore.Permits) error{
			"released":       func(p *semaphore.Permits) error { return p.Release() },
			"released by id": func(p *semaphore.Permits) error { return m.ReleaseByID(ctx, p.IDs()...) },
		} {
			began := time.Now()
			_, long, err := m.Acquire(ctx, 2, rlock.Lease(time.Hour))
			must(t, err)
			_, short, err := m.Acquire(ctx, 1)
			must(t, err)
			must(t, release(short))
			live(t, s, name+", others are held", began, time.Hour+time.Second, "x", zset("x"))
			began = time.Now()
			must(t, release(long))
			live(t, s, name+", the last", began, 5*time.Second, "x")
		}
	})
}

// A refused attempt that finds no semaphore, but permits of an earlier one, makes one that has an end too.
func TestARefusedAttemptMakesASemaphoreWithAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Hour)
		m := semaphore.New(dial(t, s, slow()), "x", 1, semaphore.Expire(2*time.Hour))
		_, _, err := m.Acquire(ctx, 1)
		must(t, err)
		must(t, s.Do(t, "DEL", "x").Error()) // as when it was evicted
		began := time.Now()
		_, _, err = m.TryAcquire(ctx, 1)
		is(t, "TryAcquire", err, rlock.ErrNotAcquired)
		live(t, s, "refused", began, 2*time.Hour, "x", zset("x"))
	})
}

// Renewals keep a semaphore alive for as long as permits are held.
func TestRenewalsKeepASemaphoreWithAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: s.Slowed(1500 * time.Millisecond)})
		ctx := within(t, time.Hour)
		m := semaphore.New(ses, "x", 3, semaphore.Expire(time.Second))
		section, p, err := m.Acquire(ctx, 1)
		must(t, err)
		timer := time.NewTimer(7 * time.Second)
		select {
		case <-section.Done():
			t.Errorf("the section has ended: %v", context.Cause(section))
		case <-timer.C:
		}
		must(t, p.Release())
		redistest.Eventually(t, 5*time.Second+s.Slack(), "everything to be gone", func() bool { return len(s.Keys(t)) == 0 })
		available(t, ctx, m, 3)
	})
}

// A semaphore with an end outlives the permits that a release gives to the next session, also if nothing renews it: one that is
// made anew before they end would give them twice.
func TestASemaphoreWithAnEndOutlivesWhatAReleaseGives(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		first := semaphore.New(dial(t, s, slow()), "x", 1, semaphore.Expire(time.Second))
		_, held, err := first.Acquire(ctx, 1)
		must(t, err)
		ses, p := locktest.DialProxy(t, s, slow())
		waiter := acquire(ctx, semaphore.New(ses, "x", 1, semaphore.Expire(time.Second)), 1)
		awaitInLine(t, s, "x", 1)
		_, release := p.HoldRequest(locktest.Runs(src["renew"]))
		defer release()
		must(t, s.Do(t, "PEXPIRE", "x", "1000").Error()) // as when most of the lease is over
		must(t, held.Release())
		g := locktest.Get(t, waiter, 5*time.Second, "the next session")
		must(t, g.err)
		for g.section.Err() == nil {
			if _, _, err := first.TryAcquire(ctx, 1); err == nil && g.section.Err() == nil {
				t.Fatal("two hold the only permit")
			}
			pass(t, 5*time.Millisecond)
		}
	})
}

// A permit that was given to an entry whose caller has left goes on to the next one. The command for that knows of no end, and
// still both keys of the semaphore end together.
func TestWhatNobodyWaitsForAnyMoreKeepsTheEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		_, held, err := semaphore.New(dial(t, s, slow()), "x", 1, semaphore.Expire(2*time.Hour)).Acquire(ctx, 1)
		must(t, err)
		ses, p := locktest.DialProxy(t, s, slow())
		_, release := p.HoldRequest(locktest.Runs(src["renew"]))
		defer release()
		waiter := acquire(ctx, semaphore.New(ses, "x", 1, semaphore.Expire(2*time.Hour)), 1)
		awaitInLine(t, s, "x", 1)
		begins, _, _ := strings.Cut(inLine(t, s, "x")[0], ":")
		must(t, s.Do(t, "ZADD", "relock_line1:{x}", "1", begins+":999999").Error()) // of a caller that has left
		began := time.Now()
		must(t, held.Release())
		must(t, locktest.Get(t, waiter, 10*time.Second, "the one behind it").err)
		live(t, s, "given twice", began, 2*time.Hour, "x", zset("x"))
	})
}

// What is given to those in the line gives no end to a semaphore without one.
func TestWhatIsGivenInTheLineGivesNoEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		first := semaphore.New(dial(t, s, slow()), "x", 1)
		_, held, err := first.Acquire(ctx, 1)
		must(t, err)
		for _, release := range []func(*semaphore.Permits) error{
			func(p *semaphore.Permits) error { return p.Release() },
			func(p *semaphore.Permits) error { return first.ReleaseByID(ctx, p.IDs()...) },
		} {
			waiter := acquire(ctx, semaphore.New(dial(t, s, slow()), "x", 1), 1)
			awaitInLine(t, s, "x", 1)
			must(t, release(held))
			g := locktest.Get(t, waiter, 5*time.Second, "the next session")
			must(t, g.err)
			forever(t, s, "x", zset("x"))
			held = g.p
		}
	})
}

// What changes a counter with an end renews it. Without Expire nothing has an end.
func TestCounterWithAnEnd(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		c := semaphore.NewCounter(ses, "c", semaphore.Expire(time.Minute))
		for _, use := range []struct {
			what string
			do   func() error
		}{
			{"TrySet", func() error { return second(c.TrySet(ctx, 3)) }},
			{"Acquire", func() error { return c.Acquire(ctx, 1) }},
			{"TryAcquire", func() error { return c.TryAcquire(ctx, 1) }},
			{"Release", func() error { return c.Release(ctx, 1) }},
			{"Add", func() error { return c.Add(ctx, -1) }},
			{"Drain", func() error { return second(c.Drain(ctx)) }},
		} {
			began := time.Now()
			must(t, use.do())
			live(t, s, use.what, began, time.Minute, "c")
			must(t, s.Do(t, "PEXPIRE", "c", "10000").Error())
		}
		d, m := semaphore.NewCounter(ses, "d"), semaphore.New(ses, "x", 3)
		must(t, d.Release(ctx, 1))
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		forever(t, s, "d", "x", zset("x"))
		must(t, p.Release())
	})
}

// A semaphore that is deleted is made anew by the next request; waiters are woken, and sections
// end at their next renewal.
func TestDelete(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, w := dialWire(t, s, slow())
		m, c := semaphore.New(ses, "x", 2), semaphore.NewCounter(ses, "c")
		must(t, m.Delete(ctx)) // of nothing
		_, p, err := m.Acquire(ctx, 2)
		must(t, err)
		waiter := acquire(ctx, semaphore.New(dial(t, s, slow()), "x", 4), 2)
		redistest.Eventually(t, 10*time.Second, "the waiter to listen", func() bool { return len(s.Channels(t)) == 3 })
		must(t, m.Delete(ctx))
		g := locktest.Get(t, waiter, 10*time.Second, "the waiter")
		must(t, g.err)
		is(t, "Release", p.Release(), rlock.ErrLost)
		late := w.last(t, "delete")
		must(t, m.SetLimit(ctx, 5))
		deliver(t, s, late)
		available(t, ctx, m, 3)
		must(t, g.p.Release())

		must(t, c.Release(ctx, 3))
		must(t, c.Delete(ctx))
		late = w.last(t, "delete_counter")
		if v := value(t, s, "c"); v != "" {
			t.Errorf("the counter has %s", v)
		}
		must(t, second(c.TrySet(ctx, 4)))
		deliver(t, s, late)
		available(t, ctx, c, 4)
	})
}
