package semaphore_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// The operations of Redisson's RSemaphore, one after the other.
func TestCounter(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		c := semaphore.NewCounter(ses, "x")
		available(t, ctx, c, 0)
		is(t, "TryAcquire of nothing", c.TryAcquire(ctx, 1), rlock.ErrNotAcquired)
		must(t, c.Add(ctx, 0))
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("nothing was done, and there are %q", keys)
		}
		drain(t, ctx, c, 0)
		for i, want := range []bool{true, false} {
			if ok, err := c.TrySet(ctx, 5-i); ok != want || err != nil {
				t.Errorf("TrySet %d: %v, %v", i, ok, err)
			}
		}
		must(t, c.Acquire(ctx, 2))
		available(t, ctx, c, 3)
		is(t, "TryAcquire of more", c.TryAcquire(ctx, 4), rlock.ErrNotAcquired)
		is(t, "Acquire of more", c.Acquire(ctx, 4, rlock.Wait(0)), rlock.ErrNotAcquired)
		must(t, c.TryAcquire(ctx, 3))
		available(t, ctx, c, 0)
		must(t, c.Release(ctx, 7))
		available(t, ctx, c, 7)
		must(t, c.Add(ctx, -9))
		available(t, ctx, c, -2)
		is(t, "TryAcquire below 0", c.TryAcquire(ctx, 1), rlock.ErrNotAcquired)
		drain(t, ctx, c, -2)
		available(t, ctx, c, 0)
		must(t, c.Add(ctx, 4))
		drain(t, ctx, c, 4)
		drain(t, ctx, c, 0)
		must(t, c.Release(ctx, math.MaxInt32))
		must(t, c.Release(ctx, math.MaxInt32))
		must(t, c.Acquire(ctx, math.MaxInt32+1))
		available(t, ctx, c, math.MaxInt32-1)
		// All but the counter itself goes by itself.
		for _, key := range s.Keys(t) {
			ttl, err := s.Do(t, "PTTL", key).AsInt64()
			must(t, err)
			if most := (3 * semaphore.Memory).Milliseconds(); key != "x" && (ttl < 1 || ttl > most) {
				t.Errorf("%s has a TTL of %d ms", key, ttl)
			}
		}
		s.FlushAll(t)
		must(t, c.Release(ctx, 2)) // makes it
		available(t, ctx, c, 2)
	})
}

// A counter may be made empty, for others to fill.
func TestCounterOfNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		c := semaphore.NewCounter(dial(t, s, slow()), "x")
		for i, want := range []bool{true, false} {
			if made, err := c.TrySet(ctx, i); made != want || err != nil {
				t.Errorf("TrySet(%d): %v, %v", i, made, err)
			}
		}
		if v := value(t, s, "x"); v != "0" {
			t.Errorf("Redis has %q", v)
		}
		must(t, c.Release(ctx, 2))
		must(t, c.TryAcquire(ctx, 2))
	})
}

func drain(t testing.TB, ctx context.Context, c *semaphore.Counter, want int) {
	t.Helper()
	n, err := c.Drain(ctx)
	must(t, err)
	if n != want {
		t.Errorf("drained %d, want %d", n, want)
	}
}

// Waiters are served in their order, large or small, by whatever adds: Release, Add and
// TrySet; and one addition lets in as many as it suffices for, in all sessions.
func TestCounterWaiters(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses, other := dial(t, s, cfg), dial(t, s, slow())
		ctx := within(t, 30*time.Second)
		c, giver := semaphore.NewCounter(ses, "x"), semaphore.NewCounter(other, "x")
		wait := func(n int) <-chan error {
			e := start(func() error { return c.Acquire(ctx, n) })
			locktest.Get(t, waiting, 10*time.Second, "a waiter")
			return e
		}
		in := func(what string, e <-chan error) {
			t.Helper()
			must(t, locktest.Get(t, e, 10*time.Second, what))
		}
		two := wait(2)
		if ok, err := giver.TrySet(ctx, 2); !ok || err != nil {
			t.Errorf("TrySet: %v, %v", ok, err)
		}
		in("two, by TrySet", two)

		two, one := wait(2), wait(1)
		must(t, giver.Release(ctx, 1))
		is(t, "TryAcquire behind waiters", c.TryAcquire(ctx, 1), rlock.ErrNotAcquired)
		waits(t, "two", two)
		waits(t, "one", one)
		must(t, giver.Add(ctx, 1))
		in("two, by Add", two)
		waits(t, "one", one)
		must(t, c.Release(ctx, 1)) // by its own session
		in("one", one)

		var all []<-chan error
		for range 5 {
			all = append(all, wait(1))
		}
		foreign := start(func() error { return giver.Acquire(ctx, 2) })
		awaitInLine(t, s, "x", 2)
		awaitListener(t, s, "x")
		must(t, s.Do(t, "INCRBY", "x", "7").Error()) // as Redisson releases
		must(t, s.Do(t, "PUBLISH", channel("x"), "7").Error())
		for _, e := range append(all, foreign) {
			in("everybody", e)
		}
		available(t, ctx, c, 0)
		silent(t, s, ses, other)
	})
}

// Never more than there are, counted outside, by many goroutines of several sessions, and
// no wake-up is lost.
func TestCounterNeverGivesMoreThanThereAre(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 2*time.Minute)
		const limit = 5
		rounds := 20
		switch {
		case testing.Short():
			rounds = 1
		case s.IsMini():
			rounds = 3
		}
		first := semaphore.NewCounter(dial(t, s, rlock.Config{}), "x")
		if _, err := first.TrySet(ctx, limit); err != nil {
			t.Fatal(err)
		}
		var inside, entered atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			ses := dial(t, s, slow())
			for g := range 32 {
				c, n := semaphore.NewCounter(ses, "x"), g%3+1
				wg.Go(func() {
					for range rounds {
						if err := c.Acquire(ctx, n); err != nil {
							t.Error(err)
							return
						}
						if now := inside.Add(int64(n)); now > limit {
							t.Errorf("%d inside", now)
						}
						entered.Add(1)
						inside.Add(int64(-n))
						if err := c.Release(ctx, n); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		available(t, ctx, first, limit)
		if entered.Load() != int64(4*32*rounds) {
			t.Errorf("%d entered", entered.Load())
		}
	})
}

// A waiter that gives up takes nothing; a closed session says so (R12).
func TestCounterGivingUp(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses := dial(t, s, cfg)
		ctx := within(t, 20*time.Second)
		c := semaphore.NewCounter(ses, "x")
		is(t, "Wait", c.Acquire(ctx, 1, rlock.Wait(20*time.Millisecond)), rlock.ErrNotAcquired)
		short, cancel := context.WithTimeout(ctx, s.Slowed(50*time.Millisecond))
		defer cancel()
		is(t, "deadline", c.Acquire(short, 1), rlock.ErrNotAcquired, context.DeadlineExceeded)
		for what, err := range map[string]error{
			"Acquire": c.Acquire(short, 1), "TryAcquire": c.TryAcquire(short, 1), "Release": c.Release(short, 1),
			"Add": c.Add(short, 0), "Drain": second(c.Drain(short)), "TrySet": second(c.TrySet(short, 1)),
			"Available": second(c.Available(short)),
		} {
			if is(t, what, err, context.DeadlineExceeded); errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("%s: %v", what, err)
			}
		}
		nothingTaken(t, s)
		for len(waiting) > 0 {
			<-waiting
		}
		waiter := start(func() error { return c.Acquire(ctx, 1) })
		locktest.Get(t, waiting, 10*time.Second, "the waiter")
		must(t, ses.Close())
		is(t, "the waiter", locktest.Get(t, waiter, 10*time.Second, "the waiter's end"), rlock.ErrClosed)
		for what, err := range map[string]error{
			"Acquire": c.Acquire(ctx, 1), "TryAcquire": c.TryAcquire(ctx, 1), "Release": c.Release(ctx, 1),
			"Add": c.Add(ctx, 1), "Add 0": c.Add(ctx, 0), "Drain": second(c.Drain(ctx)), "TrySet": second(c.TrySet(ctx, 1)),
			"Available": second(c.Available(ctx)),
		} {
			is(t, what, err, rlock.ErrClosed)
		}
		nothingTaken(t, s)
	})
}

// nothingTaken checks that nothing is left but requests that took nothing: the end of a wait may
// fall into an attempt.
func nothingTaken(t testing.TB, s *redistest.Server) {
	t.Helper()
	for _, key := range s.Keys(t) {
		ttl, err := s.Do(t, "PTTL", key).AsInt64()
		must(t, err)
		if ttl < 0 || !strings.HasPrefix(key, "relock_requests:") {
			t.Errorf("%s is left, with a TTL of %d", key, ttl)
			continue
		}
		done, err := s.Do(t, "HVALS", key).AsStrSlice()
		must(t, err)
		for _, what := range done {
			if !strings.HasSuffix(what, ":undone") {
				t.Errorf("%s has %s", key, what)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
