package rwlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// crowd runs fn in several goroutines for each of several sessions until stop is called,
// which waits for them.
func crowd(sessions []*rlock.Session, each int, fn func(*rlock.Session)) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, ses := range sessions {
		for range each {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						fn(ses)
					}
				}
			})
		}
	}
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// busy holds a section for d.
func busy(section context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-section.Done():
	}
}

// Readers of several sessions arrive without end, each held for readFor, with never a
// moment without one: a writer still gets in within about one such time (R23), time after
// time, and the readers go on.
func TestWriterGetsInAmongEndlessReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const readFor = 100 * time.Millisecond
		sessions := []*rlock.Session{dial(t, s, slow), dial(t, s, slow), dial(t, s, slow)}
		w := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 60*time.Second)
		var reading atomic.Int32 // Redis does not count those who share a hold
		stop := crowd(sessions, 6, func(ses *rlock.Session) {
			section, r, err := rwlock.New(ses, "x").RLock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			reading.Add(1)
			busy(section, readFor)
			reading.Add(-1)
			if err := r.Unlock(); err != nil {
				t.Error(err)
			}
		})
		defer stop()
		worst := time.Duration(0)
		for range 10 {
			redistest.Eventually(t, 10*time.Second, "many readers", func() bool {
				st, err := w.State(ctx)
				return err == nil && st.Mode == "read" && reading.Load() > 6
			})
			begin := time.Now()
			_, h := hold(t, ctx, w.Lock)
			worst = max(worst, time.Since(begin))
			must(t, h.Unlock())
		}
		t.Logf("a writer waited %v at most for readers of %v", worst, readFor)
		limit := readFor + 700*time.Millisecond
		if !s.IsMini() {
			limit = 5 * time.Second // by the wall clock of a busy machine; a writer that starves waits for ever
		}
		if worst > limit {
			t.Errorf("a writer waited %v, want no more than a read hold of %v", worst, readFor)
		}
		stop()
		nothingLeft(t, s)
	})
}

// Writers of several sessions take turns without end: waiting readers still get in.
func TestReadersGetInAmongEndlessWriters(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		sessions := []*rlock.Session{dial(t, s, slow), dial(t, s, slow), dial(t, s, slow)}
		r := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 60*time.Second)
		stop := crowd(sessions, 4, func(ses *rlock.Session) {
			section, h, err := rwlock.New(ses, "x").Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			busy(section, 3*time.Millisecond)
			if err := h.Unlock(); err != nil {
				t.Error(err)
			}
		})
		defer stop()
		worst := time.Duration(0)
		for range 20 {
			begin := time.Now()
			_, h := hold(t, ctx, r.RLock, rlock.Wait(20*time.Second))
			worst = max(worst, time.Since(begin))
			must(t, h.Unlock())
		}
		t.Logf("a reader waited %v at most", worst)
		stop()
		nothingLeft(t, s)
	})
}

// A writer that gives up lets those in whom it kept out, at once, however it gives up.
func TestWriterThatGivesUpLetsReadersIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, c := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 60*time.Second)
		_, r := hold(t, ctx, a.RLock)
		for _, how := range []string{"cancel", "wait"} {
			waitCtx, cancel := context.WithCancel(ctx)
			opts := []rlock.LockOption{rlock.Wait(30 * time.Second)}
			if how == "wait" {
				opts[0] = rlock.Wait(300 * time.Millisecond)
			}
			w := goLock(waitCtx, b.Lock, opts...)
			redistest.Eventually(t, 5*time.Second, "the writer's mark", func() bool { return writersWaiting(t, s, "x") == 1 })
			reader := goLock(ctx, c.RLock)
			if how == "cancel" {
				readersWait(t, s, "x", 1)
				busy(ctx, 100*time.Millisecond) // no attempt is on its way
				notIn(t, reader, "a writer waits")
				cancel()
			}
			err := locktest.Get(t, w, 5*time.Second, "the writer's Lock").err
			is(t, "the writer's Lock", err, rlock.ErrNotAcquired)
			if n := writersWaiting(t, s, "x"); n != 0 {
				t.Errorf("%s: %d marks when Lock has returned", how, n)
			}
			must(t, in(t, reader, 5*time.Second, how+": the reader").hold.Unlock())
			cancel()
		}
		// TryLock, and a Wait of 0, keep nobody out.
		refused(t, ctx, b.TryLock, "a writer")
		_, _, err := b.Lock(ctx, rlock.Wait(0))
		is(t, "Lock with Wait(0)", err, rlock.ErrNotAcquired)
		_, r2 := hold(t, ctx, c.TryRLock)
		must(t, r2.Unlock())
		must(t, r.Unlock())
		nothingLeft(t, s)
	})
}

// Of two writers that wait, one that gives up does not take the other's right along.
func TestOneOfTwoWaitingWritersGivesUp(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, c := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		_, r := hold(t, ctx, a.RLock)
		waitCtx, cancel := context.WithCancel(ctx)
		defer cancel()
		w1, w2 := goLock(waitCtx, b.Lock), goLock(ctx, c.Lock)
		redistest.Eventually(t, 5*time.Second, "two marks", func() bool { return writersWaiting(t, s, "x") == 2 })
		busy(ctx, 100*time.Millisecond) // no attempt is on its way, which could come behind the end of its caller
		cancel()
		if err := locktest.Get(t, w1, 5*time.Second, "the first writer").err; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := writersWaiting(t, s, "x"); n != 1 {
			t.Errorf("%d marks, want 1", n)
		}
		refused(t, ctx, rwlock.New(dial(t, s, slow), "x").TryRLock, "a reader while the second writer waits")
		must(t, r.Unlock())
		must(t, in(t, w2, 5*time.Second, "the second writer").hold.Unlock())
		nothingLeft(t, s)
	})
}

// A writer whose process died while it waited keeps readers out for as long as others are inside only: it is not heard
// of any more, or nobody listens for it.
func TestDeadWaitingWriterDelaysReadersBriefly(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		first, m := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		for _, heard := range []string{"4999999999999000", "4990000000000000"} { // never, and until long from now
			_, r := hold(t, ctx, first.RLock)
			must(t, s.Do(t, "ZADD", "relock_line1:{x}", "100", yours+"you", heard, "syou", "8409999999999999", "m").Error())
			must(t, s.Do(t, "PEXPIRE", "relock_line1:{x}", "600000").Error())
			refused(t, ctx, m.TryRLock, "a reader behind a writer")
			must(t, r.Unlock())
			reader := in(t, goLock(ctx, m.RLock), 5*time.Second, "a reader")
			must(t, reader.hold.Unlock())
			must(t, s.Do(t, "DEL", "relock_line1:{x}").Error())
		}
		nothingLeft(t, s)
	})
}

// A waiting writer keeps its mark for as long as it waits, also if no message comes: it
// looks again before the mark is over.
func TestWaitingWriterKeepsItsMark(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const floor = 100 * time.Millisecond
		a := rwlock.New(dial(t, s, slow), "x")
		b := rwlock.New(dial(t, s, rlock.Config{PollFloor: floor}), "x")
		c := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		_, r := hold(t, ctx, a.RLock)
		w := goLock(ctx, b.Lock)
		redistest.Eventually(t, 5*time.Second, "the writer's mark", func() bool { return writersWaiting(t, s, "x") == 1 })
		if until, ok := markUntil(t, s, "x"); !ok || time.Until(until) > 2*floor+time.Second {
			t.Errorf("the mark lives until %v; if its writer dies, readers wait that long", until)
		}
		until := time.Now().Add(2 * time.Second)
		redistest.Eventually(t, 5*time.Second, "time to pass, longer than a mark lives", func() bool {
			refused(t, ctx, c.TryRLock, "a reader while a writer waits")
			return time.Now().After(until)
		})
		must(t, r.Unlock())
		must(t, in(t, w, 5*time.Second, "the writer").hold.Unlock())
		nothingLeft(t, s)
	})
}
