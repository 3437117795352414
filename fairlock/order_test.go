package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Waiters are served in the order in which they came: 3 sessions, 20 waiters each, one by one, in an order
// that no session could find out by itself. Nothing but the releases moves the queue: no
// heartbeat is due within the test.
func TestServedInOrderOfArrival(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		var sessions []*rlock.Session
		for range 3 {
			sessions = append(sessions, dial(t, s, silent()))
		}
		name := redistest.Name(t)
		first := lock(t, ctx, fairlock.New(sessions[0], name))

		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i, n := range rand.Perm(60) {
			m := fairlock.New(sessions[n%3], name)
			wg.Go(func() {
				if err := m.Do(ctx, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					served = append(served, i)
					return nil
				}); err != nil {
					t.Errorf("waiter %d: %v", i, err)
				}
			})
			queued(t, m, i+1)
		}
		unlock(t, first)
		wg.Wait()
		for i, n := range served {
			if i != n {
				t.Fatalf("served in the order %v", served)
			}
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// Those who leave the queue, by their context or because their time is over, are gone from
// it when Lock returns, and those who stay keep their order (R20).
func TestThoseWhoLeaveAreGoneAtOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		a, b := dial(t, s, silent()), dial(t, s, silent())
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		type waiter struct {
			c      <-chan locked
			cancel context.CancelFunc
		}
		var all []waiter
		for i := range 12 {
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			ses := []*rlock.Session{a, b}[i%2]
			all = append(all, waiter{goQueued(t, own, fairlock.New(ses, "x"), i+1), cancel})
		}
		// Lock waits for a while for the answer that its place is given up; a busy machine may
		// need longer.
		gone := func(what string, left int) {
			t.Helper()
			if !s.IsMini() {
				queued(t, m, left)
			} else if n, err := m.Waiters(ctx); err != nil || n != left {
				t.Fatalf("%d waiters right after %s, want %d: %v", n, what, left, err)
			}
		}
		left := len(all)
		for i, w := range all {
			if i%3 == 1 {
				continue
			}
			w.cancel()
			l := locktest.Get(t, w.c, patience, "Lock returns")
			left--
			gone("one had left", left)
			is(t, "cancelled", l.err, rlock.ErrNotAcquired, context.Canceled)
		}
		for _, m := range []*fairlock.Mutex{m, fairlock.New(b, "x")} {
			_, _, err := m.Lock(ctx, rlock.Wait(50*time.Millisecond))
			gone("one's time was over", left)
			is(t, "Wait over", err, rlock.ErrNotAcquired)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait over: %v; no context of the caller's has ended", err)
			}
		}
		unlock(t, first)
		for i, w := range all {
			if i%3 != 1 {
				continue
			}
			l := granted(t, w.c, patience, fmt.Sprint("waiter ", i))
			for j := i + 3; j < len(all); j += 3 {
				waits(t, all[j].c, fmt.Sprint("waiter ", j))
			}
			unlock(t, l)
		}
		nothingLeft(t, s)
	})
}

// TryLock gets nothing while another caller waits, not even in the moments of handing over, and
// a Lock that comes meanwhile is served last.
func TestNobodyOvertakes(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		a, b, c := dial(t, s, silent()), dial(t, s, silent()), dial(t, s, silent())
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		n := redistest.Rounds(15)
		var served atomic.Int32
		attempted := make(chan struct{}) // one has ended, and a caller that has the lock waits for that
		var wg sync.WaitGroup
		for i := range n {
			ses := []*rlock.Session{a, b}[i%2]
			wg.Go(func() {
				l, h, err := fairlock.New(ses, "x").Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				served.Add(1)
				for range 3 { // TryLock is tried while this one holds
					select {
					case <-attempted:
					case <-l.Done():
					}
				}
				if err := h.Unlock(); err != nil {
					t.Error(err)
				}
			})
			queued(t, m, i+1)
		}
		trying, stop := context.WithCancel(ctx)
		var tried sync.WaitGroup
		for range 3 {
			tried.Go(func() {
				for trying.Err() == nil {
					if !tryToOvertake(t, ctx, fairlock.New(c, "x"), func() bool { return int(served.Load()) < n }) {
						continue
					}
					select {
					case attempted <- struct{}{}:
					default:
					}
				}
			})
		}
		late := goLock(ctx, fairlock.New(c, "x"))
		queued(t, m, n+1)
		unlock(t, first)
		l := granted(t, late, 30*time.Second, "the last")
		if got := int(served.Load()); got != n {
			t.Errorf("the last one got in when %d of %d had been served", got, n)
		}
		unlock(t, l)
		wg.Wait()
		stop()
		tried.Wait()
		nothingLeft(t, s)
	})
}

// tryToOvertake is one TryLock, which must get nothing while others wait. It reports whether Redis
// was asked.
func tryToOvertake(t *testing.T, ctx context.Context, m *fairlock.Mutex, waiting func() bool) bool {
	_, h, err := m.TryLock(ctx)
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		return true
	case errors.Is(err, rlock.ErrUnavailable):
		return false // no answer within a second, on a busy machine: nothing was tried
	case err == nil:
		if waiting() {
			t.Error("TryLock got in before all that waited had been served")
		}
		err = h.Unlock()
	}
	if err != nil {
		t.Error(err)
	}
	return true
}

// TryLock of a lock that is free is enough to let a waiter in, and is refused.
func TestTryLockLetsTheFirstIn(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b := dial(t, s, silent()), dial(t, s, silent())
		first := lock(t, ctx, fairlock.New(a, "x"))
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		must(t, s.Do(t, "DEL", "x", "relock_holds:{x}").Error())
		_, _, err := fairlock.New(a, "x").TryLock(ctx)
		is(t, "TryLock of a lock that somebody waits for", err, rlock.ErrNotAcquired)
		unlock(t, granted(t, next, patience, "the waiter"))
		is(t, "Unlock", first.hold.Unlock(), rlock.ErrLost)
		nothingLeft(t, s)
	})
}
