package semaphore_test

import (
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// What is added to a counter lets in the sessions of the line in the order of arrival: each is called by the one in
// front of it, and asks once.
func TestCounterCallsOneSessionAfterTheOther(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		giver := semaphore.NewCounter(dial(t, s, slow()), "c")
		const sessions = 5
		in := make(chan int, sessions)
		var all []*liner
		for i := range sessions {
			l := newLiner(t, s)
			all = append(all, l)
			c := semaphore.NewCounter(l.ses, "c")
			go func() {
				if err := c.Acquire(ctx, 1); err != nil {
					t.Error(err)
				}
				in <- i
			}()
			l.isRefused(1)
			pass(t, time.Millisecond)
		}
		all[0].isRefused(1) // it listens
		must(t, giver.Release(ctx, 3))
		// Those that get in at once may be heard of in any order; and a busy machine may be late by more than 5 ms.
		next := func(from, to int) {
			t.Helper()
			for range to - from {
				i := locktest.Get(t, in, 10*time.Second, "the next in the line")
				if redistest.MadeUpClock() && (i < from || i >= to) {
					t.Errorf("session %d got in, and it was the turn of those from %d on", i, from)
				}
			}
		}
		next(0, 3)
		waits(t, "the fourth", in)
		available(t, ctx, giver, 0)
		for i, l := range all[:3] {
			if n := len(l.refused); redistest.MadeUpClock() && n > 0 {
				t.Errorf("session %d was refused %d times more", i, n)
			}
		}
		must(t, giver.Add(ctx, 2))
		next(3, sessions)
	})
}

// A session that is called and has stopped keeps those behind it waiting for 5 ms: they were told when to come.
func TestACalledSessionThatHasStoppedHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"counter", "many permits"} {
		t.Run(kind, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				stopped, p := locktest.DialProxy(t, s, slow())
				second, giver := newLiner(t, s), dial(t, s, slow())
				take := func(ses *rlock.Session) <-chan error {
					if kind == "counter" {
						return start(func() error { return semaphore.NewCounter(ses, "x").Acquire(ctx, 1) })
					}
					return start(func() error { _, _, err := semaphore.New(ses, "x", 70).Acquire(ctx, 65); return err })
				}
				give := func() { must(t, semaphore.NewCounter(giver, "x").Release(ctx, 1)) }
				if kind != "counter" {
					_, held, err := semaphore.New(giver, "x", 70).Acquire(ctx, 70)
					must(t, err)
					give = func() { must(t, held.Release()) }
				}
				first := take(stopped)
				awaitInLine(t, s, "x", 1)
				awaitListener(t, s, "x")
				pass(t, 10*time.Millisecond)
				behind := take(second.ses)
				awaitInLine(t, s, "x", 2)
				p.BlackHole(true)
				defer p.BlackHole(false)
				began := time.Now()
				give()
				must(t, locktest.Get(t, behind, 10*time.Second, "the one behind it"))
				if d := time.Since(began); redistest.MadeUpClock() && (d < 5*time.Millisecond || d > 12*time.Millisecond) {
					t.Errorf("the one behind got in after %v, want 5 ms and an attempt", d)
				}
				waits(t, "the one that has stopped", first)
			})
		})
	}
}

// A request for more than has room in an entry stands in the line as any other, up to the most that is allowed.
func TestARequestForABillionIsCalled(t *testing.T) {
	for _, n := range []int{9_999_999, 10_000_000, 60_466_176, 1<<31 + 5, 1 << 53} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx, name := within(t, 30*time.Second), redistest.Name(t)
				giver, c := semaphore.NewCounter(dial(t, s, slow()), name), semaphore.NewCounter(dial(t, s, slow()), name)
				_, err := giver.TrySet(ctx, n-1)
				must(t, err)
				done := start(func() error { return c.Acquire(ctx, n) })
				awaitInLine(t, s, name, 1)
				must(t, giver.Release(ctx, 1))
				must(t, locktest.Get(t, done, 10*time.Second, "the request"))
				available(t, ctx, giver, 0)
			})
		})
	}
}
