package semaphore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// ttls returns for how many seconds the keys will live that begin so: -1 for one that stays.
func ttls(t testing.TB, s *redistest.Server, keys ...string) (all []int64) {
	t.Helper()
	for _, key := range keys {
		ms, err := s.Do(t, "PTTL", key).AsInt64()
		must(t, err)
		if ms > 0 {
			ms = (ms + 500) / 1000
		}
		all = append(all, ms)
	}
	return all
}

// Every use of a semaphore with an end renews it, and a lease that is longer keeps it for as long.
func TestSemaphoreWithAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: 30 * time.Second})
		ctx := within(t, time.Hour)
		m := semaphore.New(ses, "x", 3, semaphore.Expire(time.Minute))
		live := func(what string, want ...int64) {
			t.Helper()
			if got := ttls(t, s, "x", zset("x"))[:len(want)]; !slices.Equal(got, want) {
				t.Errorf("%s: the keys live for %v s, want %v", what, got, want)
			}
			must(t, s.Do(t, "PEXPIRE", "x", "10000").Error())
		}
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		live("acquired", 60, 60)
		must(t, p.Release())
		live("released", 60)
		must(t, s.Do(t, "PERSIST", "x").Error()) // as one that another process has made without an end
		_, p, err = m.Acquire(ctx, 1)
		must(t, err)
		live("acquired again", 60, 60)
		must(t, m.SetLimit(ctx, 5))
		live("SetLimit", 60, 60)
		must(t, m.SetLimit(ctx, 5))
		live("the same SetLimit", 60, 60)
		_, long, err := m.Acquire(ctx, 1, rlock.Lease(5*time.Minute))
		must(t, err)
		live("a longer lease", 301, 301)
		must(t, long.Extend(ctx, 10*time.Minute))
		live("extended", 601, 601)
		must(t, m.ExtendByID(ctx, 20*time.Minute, long.IDs()...))
		live("extended by id", 1201, 1201)
		must(t, m.ReleaseByID(ctx, long.IDs()...))
		live("released by id", 60, 60)
		must(t, p.Release())
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
			must(t, use.do())
			if got := ttls(t, s, "c")[0]; got != 60 {
				t.Errorf("%s: the counter lives for %d s", use.what, got)
			}
			must(t, s.Do(t, "PEXPIRE", "c", "10000").Error())
		}
		forever, m := semaphore.NewCounter(ses, "d"), semaphore.New(ses, "x", 3)
		must(t, forever.Release(ctx, 1))
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		if got := ttls(t, s, "d", "x", zset("x")); !slices.Equal(got, []int64{-1, -1, -1}) {
			t.Errorf("without Expire the keys live for %v", got)
		}
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
