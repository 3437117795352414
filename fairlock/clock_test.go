package fairlock_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A live waiter keeps its place for as long as it waits: hours, while others come and go,
// also from its own session (R17, R19). Then order holds, and each is in at once.
func TestWaitersKeepTheirPlacesForHours(t *testing.T) {
	t.Parallel()
	pause := 20 * time.Minute
	if testing.Short() {
		pause /= 5
	}
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		cfg := rlock.Config{QueueLease: 48 * time.Second, PollFloor: 10 * time.Second} // a heartbeat each 10 s
		a, b := locktest.DialBubble(t, m, cfg), locktest.DialBubble(t, m, cfg)
		defer a.Close()
		defer b.Close()
		ctx := context.Background()
		section, h, err := fairlock.New(a, "x").Lock(ctx)
		must(t, err)
		in := make(chan int, 4)
		for i, ses := range []*rlock.Session{b, a, b, b} {
			var opts []rlock.LockOption
			if i == 2 {
				opts = append(opts, rlock.Lease(time.Minute))
			}
			go passes(t, ctx, fairlock.New(ses, "x"), func() { in <- i }, opts...)
			synctest.Wait()
			time.Sleep(pause)
		}
		for range 10 { // a waiter that gives up
			_, _, err := fairlock.New(b, "x").Lock(ctx, rlock.Wait(pause/3))
			is(t, "Lock", err, rlock.ErrNotAcquired)
		}
		if n, err := fairlock.New(a, "x").Waiters(ctx); err != nil || n != 4 {
			t.Errorf("%d waiters, %v; want 4", n, err)
		}
		if section.Err() != nil {
			t.Fatalf("the hold was lost: %v", context.Cause(section))
		}
		began := time.Now()
		must(t, h.Unlock())
		for i := range 4 {
			if got := <-in; got != i {
				t.Errorf("the %d. to be served was waiter %d", i, got)
			}
		}
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("it took %v of the bubble's time to serve them", d)
		}
		synctest.Wait()
		if keys := redistest.LockKeys(m.Keys()); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// passes locks m, calls in before the next one can be in, and unlocks.
func passes(t *testing.T, ctx context.Context, m *fairlock.Mutex, in func(), opts ...rlock.LockOption) {
	_, h, err := m.Lock(ctx, opts...)
	in()
	if err != nil {
		t.Error(err)
	} else if err := h.Unlock(); err != nil {
		t.Error(err)
	}
}

// No script is told a client's time: no argument of any command could be one (R21).
func TestScriptsTakeNoClientTime(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		cfg := rlock.Config{Lease: time.Minute, QueueLease: time.Minute, PollFloor: 200 * time.Millisecond} // for a heartbeat
		ses, proxy := dialProxy(t, s, cfg)
		m := fairlock.New(ses, "x", rlock.Fenced())
		first := lock(t, ctx, m)
		_, nested, err := m.Lock(first.ctx, rlock.Lease(time.Minute))
		must(t, err)
		must(t, nested.Extend(ctx, time.Minute))
		must(t, nested.Unlock())
		next := goQueued(t, ctx, m, 1)
		last := goQueued(t, ctx, m, 2, rlock.Lease(time.Minute))
		redistest.Eventually(t, patience, "a heartbeat", func() bool { return locktest.Sent(proxy, runs("look")) > 0 })
		_, _, err = m.TryLock(ctx)
		is(t, "TryLock", err, rlock.ErrNotAcquired)
		_, err = m.ForceUnlock(ctx)
		must(t, err)
		unlock(t, granted(t, next, patience, "the next"))
		unlock(t, granted(t, last, patience, "the last"))
		calls := 0
		for _, line := range proxy.Log() {
			if !strings.HasPrefix(line, "EVALSHA ") {
				continue
			}
			calls++
			for _, arg := range strings.Fields(line)[2:] {
				if n, err := strconv.ParseFloat(arg, 64); err == nil && n > 1e9 && len(arg) < 30 {
					t.Errorf("argument %q could be a time: %q", arg, line)
				}
			}
		}
		if calls < 10 {
			t.Errorf("only %d calls were looked at", calls)
		}
	})
}

// Nor does it matter what time Redis believes it is, nor that it leaps back while a caller
// waits.
func TestServerClockIsOff(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		s := redistest.Mini(t)
		s.Mini.SetTime(time.Now().Add(off)) // and stands still
		ctx := within(t, patience)
		a, b := dial(t, s, short(s)), dial(t, s, short(s))
		first := lock(t, ctx, fairlock.New(a, "x"))
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		last := goQueued(t, ctx, fairlock.New(a, "x"), 2)
		if off < 0 {
			s.Mini.SetTime(time.Now().Add(off - time.Minute))
		}
		unlock(t, first)
		l := granted(t, next, patience, "the next")
		waits(t, last, "the last")
		unlock(t, l)
		unlock(t, granted(t, last, patience, "the last"))
		nothingLeft(t, s)
	}
}
