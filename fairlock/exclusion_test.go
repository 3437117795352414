package fairlock_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Mutual exclusion as seen from outside: 4 sessions, 16 goroutines each, with nested locks,
// and a counter that only the lock guards.
func TestExclusionFromOutside(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		rounds := 10
		if s.IsMini() {
			rounds = 3
		}
		var inside, most atomic.Int32
		counter := 0
		var wg sync.WaitGroup
		for range 4 {
			m := fairlock.New(dial(t, s, rlock.Config{}), "x")
			for range 16 {
				wg.Go(func() {
					for r := range rounds {
						section, h, err := m.Lock(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						if n := inside.Add(1); n > most.Load() {
							most.Store(n)
						}
						counter++
						if r%2 == 0 {
							_, nested, err := m.Lock(section)
							if err != nil {
								t.Error(err)
							} else if err := nested.Unlock(); err != nil {
								t.Error(err)
							}
						}
						runtime.Gosched()
						inside.Add(-1)
						if err := h.Unlock(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if most.Load() != 1 || counter != 4*16*rounds {
			t.Errorf("%d inside at once, counted %d of %d", most.Load(), counter, 4*16*rounds)
		}
		nothingLeft(t, s)
	})
}

// A mutex and a plain one of the same name exclude each other; a plain waiter is woken by the
// fair release when no waiter stands in the queue, a fair one has it by its next heartbeat.
func TestExclusionWithPlainMutex(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		quick := silent()
		quick.PollFloor = 100 * time.Millisecond
		a, b, c := dial(t, s, silent()), dial(t, s, silent()), dial(t, s, quick)
		fair, plain := fairlock.New(a, "x"), rlock.New(b, "x")

		first := lock(t, ctx, fair)
		_, _, err := plain.TryLock(ctx)
		is(t, "plain TryLock", err, rlock.ErrNotAcquired)
		next := goLock(ctx, plain)
		redistest.Eventually(t, patience, "the plain waiter to listen", func() bool {
			return slices.Contains(s.Channels(t), "redisson_lock__channel:{x}")
		})
		unlock(t, first)
		l := granted(t, next, patience, "the plain waiter") // its poll floor is an hour

		_, _, err = fair.TryLock(ctx)
		is(t, "fair TryLock", err, rlock.ErrNotAcquired)
		next = goQueued(t, ctx, fairlock.New(c, "x"), 1)
		waits(t, next, "the fair waiter")
		began := time.Now()
		unlock(t, l)
		l = granted(t, next, patience, "the fair waiter")
		if d := l.at.Sub(began); d > quick.PollFloor*11/10+s.Slack() {
			t.Errorf("the fair waiter had it %v after the plain release, want a poll floor at most", d)
		}
		unlock(t, l)
		nothingLeft(t, s)
	})
}

// Plain mutexes and fair ones that are taken at the same time exclude each other.
func TestExclusionWithPlainMutexes(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		quick := silent()
		quick.PollFloor = 100 * time.Millisecond
		c, d := dial(t, s, quick), dial(t, s, quick)
		var inside atomic.Int32
		var wg sync.WaitGroup
		for _, m := range []interface {
			Do(context.Context, func(context.Context) error, ...rlock.LockOption) error
		}{rlock.New(d, "y"), fairlock.New(d, "y"), rlock.New(c, "y"), fairlock.New(c, "y")} {
			wg.Go(func() {
				for range 10 {
					if err := m.Do(ctx, func(context.Context) error {
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d inside", n)
						}
						runtime.Gosched()
						inside.Add(-1)
						return nil
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		nothingLeft(t, s)
	})
}
