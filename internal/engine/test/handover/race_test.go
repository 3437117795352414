package handover_test

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
	"relock/locktrace"
	"relock/rlock"
)

// Waiters are let in in the order in which they came, whichever way the lock takes.
func TestHandOverIsFirstComeFirstServed(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, limit := range []int{0, 1, 3} {
			const n = 24
			st := locktest.NewStage(t, s, rlock.Config{HandOverLimit: limit})
			_, h := st.Lock(st.Ctx)
			var order []int // guarded by the lock
			var wg sync.WaitGroup
			for i := range n {
				next := st.Queue(st.Ctx)
				wg.Go(func() {
					got := <-next
					if got.Err != nil {
						t.Error(got.Err)
						return
					}
					order = append(order, i)
					if err := got.Hold.Unlock(); err != nil {
						t.Error(err)
					}
				})
			}
			must(t, h.Unlock())
			wg.Wait()
			for i, got := range order {
				if got != i {
					t.Fatalf("limit %d: let in were %v", limit, order)
				}
			}
			if st.Count() == 0 || len(order) != n {
				t.Errorf("limit %d: %d let in, %d hand-overs in memory", limit, len(order), st.Count())
			}
			locktest.NothingLeft(t, s, st.Session)
		}
	})
}

// Exclusion as seen from outside, with a variable that nothing else guards: sections in two
// sessions, some of which nest, panic, or are unlocked by another goroutine.
func TestHandOverExclusion(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		var sessions []*rlock.Session
		for _, limit := range []int{-1, 0, 1, 3} {
			a, b := locktest.NewStage(t, s, rlock.Config{HandOverLimit: limit}), locktest.NewStage(t, s, rlock.Config{HandOverLimit: limit})
			sessions = append(sessions, a.Session, b.Session)
			const workers = 12
			rounds := redistest.Rounds(24)
			counter := 0
			var inside atomic.Int32
			enter := func(section context.Context) {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d inside", n)
				}
				read := counter
				runtime.Gosched()
				counter = read + 1
				if section.Err() != nil {
					t.Errorf("the section has ended: %v", context.Cause(section))
				}
				inside.Add(-1)
			}
			var wg sync.WaitGroup
			for i := range workers {
				st := []*locktest.Stage{a, b}[i%2]
				m := rlock.New(st.Session, a.Name)
				wg.Go(func() {
					for r := range rounds {
						if err := cycle(st.Ctx, m, r%5, enter); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			if counter != workers*rounds {
				t.Errorf("limit %d: counter %d, want %d", limit, counter, workers*rounds)
			}
			if n := a.Count() + b.Count(); (n > 0) != (limit >= 0) {
				t.Errorf("limit %d: %d hand-overs in memory", limit, n)
			}
		}
		locktest.NothingLeft(t, s, sessions...) // it waits until nothing is listened to any more
	})
}

// cycle locks m and unlocks it, in one of several ways, and calls enter once inside.
func cycle(ctx context.Context, m *rlock.Mutex, way int, enter func(context.Context)) (err error) {
	switch way {
	case 0:
		section, h, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		unlocked := make(chan error)
		go func() { // R28: the owner is no goroutine
			enter(section)
			unlocked <- h.Unlock()
		}()
		return <-unlocked
	case 1:
		return m.Do(ctx, func(section context.Context) error {
			enter(section)
			return m.Do(section, func(context.Context) error { return nil })
		})
	case 2: // R11
		defer func() {
			if v := recover(); v != "inside" {
				err = fmt.Errorf("recovered %v", v)
			}
		}()
		return m.Do(ctx, func(section context.Context) error {
			enter(section)
			panic("inside")
		})
	case 3:
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = m.Do(ctx, func(section context.Context) error {
				enter(section)
				runtime.Goexit()
				return nil
			})
		}()
		<-ended
		return nil
	default:
		return m.Do(ctx, func(section context.Context) error { enter(section); return nil })
	}
}

// A waiter leaves at the moment at which it is let in: either it has the lock or it does
// not, and the one behind it gets it.
func TestHandOverToAWaiterWhoLeaves(t *testing.T) {
	for _, leave := range []string{"cancelled", "Wait is over", "deadline"} {
		t.Run(leave, func(t *testing.T) {
			t.Parallel() // beside the other two, which wait for most of the time
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				st := locktest.NewStage(t, s, rlock.Config{})
				got, rounds := 0, 150
				if testing.Short() {
					rounds /= 5
				}
				for i := range rounds {
					_, h := st.Lock(st.Ctx)
					ctx, cancel := context.WithCancel(st.Ctx)
					var opts []rlock.LockOption
					ends := time.Now().Add(6 * time.Millisecond)
					switch leave {
					case "Wait is over":
						opts = append(opts, rlock.Wait(max(0, time.Until(ends))))
					case "deadline":
						ctx, cancel = context.WithDeadline(st.Ctx, ends)
					}
					b := locktest.GoLock(st.Mutex, ctx, opts...)
					redistest.Eventually(t, 10*time.Second, "the first in the queue", func() bool {
						return locktest.WaitersOf(st.Session, st.Name) == 1 || time.Now().After(ends)
					})
					c := locktest.GoLock(st.Mutex, st.Ctx)
					if leave == "cancelled" {
						redistest.Eventually(t, 10*time.Second, "both in the queue", func() bool { return locktest.WaitersOf(st.Session, st.Name) == 2 })
						unlocked := locktest.Go(h.Unlock)
						for range i {
							runtime.Gosched()
						}
						cancel()
						must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
					} else {
						<-time.After(time.Until(ends) + time.Duration(i%16-8)*20*time.Microsecond)
						must(t, h.Unlock())
					}
					first := locktest.Get(t, b, 10*time.Second, "the one who leaves")
					switch {
					case first.Err == nil:
						got++
						must(t, first.Hold.Unlock())
					case !locktest.GaveUp(first.Err): // on a busy machine its time is over before its Lock begins
						t.Fatal(first.Err)
					}
					must(t, st.In(c).Hold.Unlock())
					cancel()
				}
				locktest.NothingLeft(t, s, st.Session)
				if st.Count() == 0 {
					t.Error("no hand-over in memory")
				}
				t.Logf("%d of %d got in, %d hand-overs", got, rounds, st.Count())
			})
		})
	}
}

// A waiter's context ends when the lock has been handed to it, and its Lock has not returned:
// it does not get the lock, and the next waiter does.
func TestHandOverToAWaiterWhoHasJustLeft(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		waiting, goOn := make(chan struct{}, 1), make(chan struct{})
		var lost atomic.Int32
		ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
			Waiting: func(context.Context, locktrace.Waiting) { waiting <- struct{}{}; <-goOn },
			Lost:    func(locktrace.Lost) { lost.Add(1) },
		}})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		for range 20 {
			_, h, err := m.Lock(within(t, 30*time.Second))
			must(t, err)
			locktest.Unhurried(ses, name)
			ctx, cancel := context.WithCancel(within(t, 30*time.Second))
			b := locktest.GoLock(m, ctx)
			locktest.Get(t, waiting, 5*time.Second, "the first waits")
			c := locktest.GoLock(m, within(t, 30*time.Second))
			locktest.Get(t, waiting, 5*time.Second, "the second waits")
			must(t, h.Unlock())
			cancel()
			goOn <- struct{}{}
			goOn <- struct{}{}
			first := locktest.Get(t, b, 10*time.Second, "the waiter that leaves")
			locktest.Is(t, "Lock", first.Err, rlock.ErrNotAcquired, context.Canceled)
			second := locktest.Get(t, c, 10*time.Second, "the next one")
			must(t, second.Err)
			if second.Hold.Owner() != h.Owner() {
				t.Errorf("the next one has owner %q, want %q: the claim was released", second.Hold.Owner(), h.Owner())
			}
			must(t, second.Hold.Unlock())
		}
		locktest.NothingLeft(t, s, ses)
		if lost.Load() > 0 {
			t.Errorf("%d losses", lost.Load())
		}
	})
}

// Close at the moment of a hand-over: a caller that was let in has a section that ends, one
// that was not has an error, and nothing is left in Redis.
func TestHandOverWhileTheSessionCloses(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		handed := 0
		for i := range 40 {
			st := locktest.NewStage(t, s, rlock.Config{})
			_, h := st.Lock(st.Ctx)
			waiting := []<-chan locktest.Locked{st.Queue(st.Ctx), st.Queue(st.Ctx), st.Queue(st.Ctx)}
			unlocked := locktest.Go(h.Unlock)
			for range i * 5 {
				runtime.Gosched()
			}
			closed := locktest.Go(st.Session.Close)
			if err := locktest.Get(t, unlocked, 10*time.Second, "Unlock"); err != nil && !errors.Is(err, rlock.ErrClosed) {
				t.Fatal(err)
			}
			for _, c := range waiting {
				got := locktest.Get(t, c, 10*time.Second, "a waiter")
				if got.Err != nil {
					locktest.Is(t, "a waiter", got.Err, rlock.ErrClosed)
					continue
				}
				locktest.Ends(t, got.Ctx, 10*time.Second, rlock.ErrClosed)
				if err := got.Hold.Unlock(); err != nil {
					locktest.Is(t, "Unlock", err, rlock.ErrClosed)
				}
			}
			must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
			if keys := s.Keys(t); len(keys) > 0 {
				t.Fatalf("left in Redis: %q", keys)
			}
			handed += st.Count()
		}
		if handed == 0 {
			t.Error("no hand-over in memory")
		}
	})
}
