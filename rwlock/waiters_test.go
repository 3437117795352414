package rwlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// waits waits until so many callers do, of all sessions.
func waits(t *testing.T, ctx context.Context, m *rwlock.RWMutex, want int) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, fmt.Sprint(want, " callers that wait"), func() bool {
		n, err := m.Waiters(ctx)
		must(t, err)
		return n == want
	})
}

// Waiters counts the callers of both sides, of all sessions, as of each session's last look; and not those that have come in,
// or gave up.
func TestWaitersCountsReadersAndWriters(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		cfg := rlock.Config{PollFloor: 50 * time.Millisecond}
		a, b := rwlock.New(dial(t, s, cfg), name), rwlock.New(dial(t, s, cfg), name)
		waits := func(m *rwlock.RWMutex, want int) { t.Helper(); waits(t, ctx, m, want) }
		waits(a, 0)
		_, h := hold(t, ctx, a.Lock)
		giveUp, cancel := context.WithCancel(ctx)
		defer cancel()
		var readers []<-chan locked
		for range 3 {
			readers = append(readers, goLock(ctx, b.RLock))
		}
		waits(a, 3)
		leaves := goLock(giveUp, b.RLock)
		waits(b, 4)
		writer := goLock(ctx, b.Lock)
		waits(a, 5)
		other := goLock(ctx, rwlock.New(dial(t, s, cfg), name).RLock)
		waits(a, 6)
		cancel()
		locktest.Is(t, "the caller that gave up", locktest.Get(t, leaves, 10*time.Second, "its end").err, context.Canceled)
		waits(a, 5)

		must(t, h.Unlock())
		if !redistest.MadeUpClock() { // a reader may be late on a busy machine, and come in behind the writer
			allGetIn(t, "readers and a writer", append(readers, other, writer))
			waits(a, 0)
			nothingLeft(t, s)
			return
		}
		var inside []*rlock.Hold
		for _, c := range append(readers, other) {
			got := locktest.Get(t, c, 10*time.Second, "a reader")
			must(t, got.err)
			inside = append(inside, got.hold)
		}
		waits(a, 1) // the writer
		for _, h := range inside {
			must(t, h.Unlock())
		}
		got := locktest.Get(t, writer, 10*time.Second, "the writer")
		must(t, got.err)
		waits(a, 0)
		must(t, got.hold.Unlock())
		nothingLeft(t, s)
	})
}

// What a session said of readers that wait no more is not said of its next one. Another session's keeps the line.
func TestWaitersForgetsReadersThatLeft(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		cfg := rlock.Config{PollFloor: 50 * time.Millisecond}
		a, b, c := rwlock.New(dial(t, s, cfg), name), rwlock.New(dial(t, s, cfg), name), rwlock.New(dial(t, s, cfg), name)
		_, h := hold(t, ctx, a.Lock)
		stays := goLock(ctx, c.RLock)
		waits(t, ctx, a, 1)
		for range 2 {
			giveUp, cancel := context.WithCancel(ctx)
			readers := []<-chan locked{goLock(giveUp, b.RLock), goLock(giveUp, b.RLock), goLock(giveUp, b.RLock)}
			waits(t, ctx, a, 4)
			cancel()
			for _, r := range readers {
				locktest.Is(t, "a reader that gave up", locktest.Get(t, r, 10*time.Second, "its end").err, context.Canceled)
			}
			waits(t, ctx, a, 1)
			if n := s.Do(t, "ZSCORE", locktest.LineOf(name), "w"+b.Session().ID()); n.Error() == nil {
				t.Error("the number of the callers that left stays")
			}
		}
		must(t, h.Unlock())
		got := locktest.Get(t, stays, 10*time.Second, "the reader that stayed")
		must(t, got.err)
		must(t, got.hold.Unlock())
	})
}
