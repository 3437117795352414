package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/semaphore"
)

// comeInOrder has a session come for each of sizes, one after the other, which wants so many permits. The channel tells who
// has them, or has given up as ctx has ended.
func comeInOrder(t *testing.T, ctx context.Context, s *redistest.Server, limit int, sizes []int) (<-chan int, []*semaphore.Permits) {
	t.Helper()
	in, got := make(chan int, len(sizes)), make([]*semaphore.Permits, len(sizes))
	for i, n := range sizes {
		m := semaphore.New(dial(t, s, slow()), "x", limit)
		go func() {
			_, p, err := m.Acquire(ctx, n)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			got[i] = p
			in <- i
		}()
		awaitInLine(t, s, "x", i+1)
		pass(t, time.Millisecond)
	}
	return in, got
}

// Permits are given in the order of arrival across sessions, and each release gives to as many as it suffices for.
func TestSessionsGetPermitsInTheOrderOfArrival(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		defer reportLine(t, s, "x")
		const limit = 6
		holder := semaphore.New(dial(t, s, slow()), "x", limit)
		var held []*semaphore.Permits
		for range limit {
			_, p, err := holder.Acquire(ctx, 1)
			must(t, err)
			held = append(held, p)
		}
		sizes := []int{1, 3, 1, 2, 1, 3, 6}
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		in, got := comeInOrder(t, own, s, limit, sizes)
		// What is released, and the waiters that it suffices for.
		next, began := 0, time.Now()
		for _, step := range []struct{ release, in int }{{1, 1}, {1, 0}, {1, 0}, {1, 1}, {2, 1}} {
			for range step.release {
				must(t, held[0].Release())
				held = held[1:]
			}
			for range step.in {
				i := locktest.Get(t, in, 10*time.Second, "the next in the line")
				if !redistest.MadeUpClock() && time.Since(began) >= time.Second {
					cancel()
					for range len(sizes) - next - 1 {
						locktest.Get(t, in, 10*time.Second, "a waiter that gives up")
					}
					t.Skip("what comes free is kept for a large request for 1 s, and the machine takes longer; the bubble judges")
				}
				if i != next {
					t.Fatalf("waiter %d got in, and it was the turn of %d", i, next)
				}
				next++
			}
			waits(t, "one more", in)
		}
		// Those that are inside leave one after the other. Three that get in at once may be heard of in any order.
		ordered, seen := next, map[int]bool{}
		for i := range sizes {
			for ; i >= ordered && !seen[i] || len(in) > 0; next++ {
				j := locktest.Get(t, in, 10*time.Second, "the next in the line")
				if seen[j] = true; j > next+2 || j < next-2 {
					t.Fatalf("waiter %d got in, and it was the turn of %d", j, next)
				}
			}
			must(t, got[i].Release())
		}
	})
}

// Two who hold permits, and want more, do not wait for each other: what is free is kept for the first of them for a
// second only (scenario 42).
func TestHoldersThatWantMoreDoNotWaitForEachOther(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		a, b := semaphore.New(dial(t, s, slow()), "x", 10), semaphore.New(dial(t, s, slow()), "x", 10)
		_, ofA, err := a.Acquire(ctx, 4)
		must(t, err)
		_, ofB, err := b.Acquire(ctx, 4)
		must(t, err)
		began := time.Now()
		moreA := acquire(ctx, a, 3)
		awaitInLine(t, s, "x", 1)
		pass(t, time.Millisecond)
		moreB := acquire(ctx, b, 2)
		g := locktest.Get(t, moreB, 10*time.Second, "B, which wants what is free")
		must(t, g.err)
		if d := time.Since(began); d < time.Second || d > time.Second+s.Slack() {
			t.Errorf("what A cannot use was kept for it for %v, want a second", d)
		}
		waits(t, "A", moreA)
		must(t, g.p.Release())
		must(t, ofB.Release())
		g = locktest.Get(t, moreA, 10*time.Second, "A")
		must(t, g.err)
		must(t, g.p.Release())
		must(t, ofA.Release())
	})
}

// traffic is callers who take permits again and again, for 20 ms each.
type traffic struct {
	mu    sync.Mutex
	times []time.Time // when they entered
	stops []context.CancelFunc
	done  sync.WaitGroup
}

// begin lets some more come, who want n permits each.
func (f *traffic) begin(t *testing.T, ctx context.Context, m *semaphore.Semaphore, callers, n int) {
	until, stop := context.WithCancel(ctx)
	f.stops = append(f.stops, stop)
	for range callers {
		f.done.Go(func() {
			for until.Err() == nil {
				_ = m.Do(until, n, func(context.Context) error {
					f.mu.Lock()
					f.times = append(f.times, time.Now())
					f.mu.Unlock()
					pass(t, 20*time.Millisecond)
					return nil
				})
			}
		})
	}
}

// end stops all, and waits for them.
func (f *traffic) end() {
	for _, stop := range f.stops {
		stop()
	}
	f.done.Wait()
}

// entered is how many came in in that time.
func (f *traffic) entered(from, to time.Time) (n int) {
	for _, at := range f.times {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// A large request waits for what somebody keeps for long. Meanwhile others use what is free, in the time in which it is
// not kept for the large one, and that is not starved by them (scenario 42).
func TestALargeRequestNeitherStarvesNorIsStarved(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !redistest.MadeUpClock() {
			redistest.SkipShort(t)
		}
		const limit, sessions, each, n = 100, 4, 5, 3
		ctx := within(t, time.Minute)
		_, held, err := semaphore.New(dial(t, s, slow()), "x", limit).Acquire(ctx, 40)
		must(t, err)
		began := time.Now()
		large := acquire(ctx, semaphore.New(dial(t, s, slow()), "x", limit), limit)
		awaitInLine(t, s, "x", 1)
		pass(t, time.Millisecond)
		var others traffic
		for range sessions {
			others.begin(t, ctx, semaphore.New(dial(t, s, slow()), "x", limit), each, n)
		}
		pass(t, 4500*time.Millisecond) // 1 s kept, 1 s not, 2 s kept, 1 s not, 4 s kept
		must(t, held.Release())
		released := time.Since(began)
		g := locktest.Get(t, large, 20*time.Second, "the large request")
		got := time.Since(began)
		others.end()
		must(t, g.err)
		must(t, g.p.Release())
		most := 5*time.Second + 25*time.Millisecond + s.Slack()
		if got > max(most, released+s.Slack()) {
			t.Errorf("the large request had its permits after %v, want %v", got, most)
		}
		in := func(from, to time.Duration) int { return others.entered(began.Add(from), began.Add(to)) }
		// Each of them enters about fifty times a second, if it may, and if the machine has the time.
		least := sessions * each
		if redistest.MadeUpClock() {
			least *= 10
		}
		if used := in(time.Second, 2*time.Second); used < least {
			t.Errorf("%d used what is free in the second second", used)
		}
		if redistest.MadeUpClock() {
			slack := 15 * time.Millisecond // the slice of a session
			for _, kept := range [][2]time.Duration{{0, time.Second}, {2*time.Second + slack + 25*time.Millisecond, 4 * time.Second}} {
				if used := in(kept[0], kept[1]); used > 0 {
					t.Errorf("%d used what was kept for the large one from %v to %v", used, kept[0], kept[1])
				}
			}
		}
	})
}

// What comes free is kept for a large request for 1 s, 2 s, 4 s and so on up to 32 s, with 1 s in between.
func TestWindowsGrow(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !redistest.MadeUpClock() {
			t.Skip("the bubble judges times")
		}
		ctx := within(t, 10*time.Minute)
		_, held, err := semaphore.New(dial(t, s, slow()), "x", 2).Acquire(ctx, 1)
		must(t, err)
		began := time.Now()
		large := acquire(ctx, semaphore.New(dial(t, s, slow()), "x", 2), 2)
		awaitInLine(t, s, "x", 1)
		pass(t, time.Millisecond)
		small := semaphore.New(dial(t, s, slow()), "x", 2)
		for _, opens := range []int{1, 4, 9, 18, 35, 68, 101, 134} { // 1 s, 2, 4, 8, 16, 32, 32 and 32, and 1 s behind each
			_, p, err := small.Acquire(ctx, 1)
			must(t, err)
			if at := time.Since(began); at < time.Duration(opens)*time.Second || at > time.Duration(opens)*time.Second+s.Slack() {
				t.Errorf("a small request got in after %v, want %d s", at, opens)
			}
			must(t, p.Release())
			pass(t, time.Duration(opens+1)*time.Second+10*time.Millisecond-time.Since(began)) // it is kept again
		}
		must(t, held.Release())
		g := locktest.Get(t, large, time.Second, "the large request")
		must(t, g.err)
		must(t, g.p.Release())
	})
}
