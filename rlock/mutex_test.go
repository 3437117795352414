package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestLockStandsInRedisAsRedissonsRLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{ID: "8e1a", Prefix: "app:"})
		ctx := within(t, 10*time.Second)
		m := rlock.New(ses, "order")
		section, outer, err := m.Lock(ctx)
		must(t, err)
		owner := outer.Owner()
		if !strings.HasPrefix(owner, "8e1a:") {
			t.Errorf("owner %q, want 8e1a:<number>", owner)
		}
		if id, ok := rlock.OwnerFrom(section); ok {
			t.Errorf("OwnerFrom(section) = %q, of a private owner", id)
		}
		if _, ok := rlock.OwnerFrom(ctx); ok {
			t.Error("the context given has an owner")
		}
		if got := locktest.Field(t, s, "app:order", owner); got != "1" {
			t.Errorf("HGET = %q, want 1", got)
		}
		_, inner, err := m.Lock(section)
		must(t, err)
		if got := locktest.Field(t, s, "app:order", owner); got != "2" {
			t.Errorf("HGET inside a nested call = %q, want 2", got)
		}
		if inner.Owner() != owner {
			t.Errorf("the nested hold has owner %q, want %q", inner.Owner(), owner)
		}
		st, err := m.State(ctx)
		must(t, err)
		if len(st.Owners) != 1 || st.Owners[owner] != 2 || st.TTL <= 29*time.Second || st.TTL > 30*time.Second {
			t.Errorf("State = %+v", st)
		}
		must(t, inner.Unlock())
		if got := locktest.Field(t, s, "app:order", owner); got != "1" {
			t.Errorf("HGET after the inner Unlock = %q, want 1", got)
		}
		must(t, outer.Unlock())
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left in Redis: %q", keys)
		}
		st, err = m.State(ctx)
		if must(t, err); len(st.Owners) != 0 || st.TTL != 0 {
			t.Errorf("State of a free lock = %+v", st)
		}
	})
}

// The context of the critical section ends with ErrReleased at the last Unlock, in
// whatever order the holds are unlocked, and not before.
func TestSectionEndsWithTheLastHold(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 10*time.Second)
		m := rlock.New(ses, "x")
		c1, h1, err := m.Lock(ctx)
		must(t, err)
		c2, h2, err := m.Lock(c1)
		must(t, err)
		derived, cancel := context.WithCancel(c2)
		defer cancel()
		c3, h3, err := m.Lock(derived)
		must(t, err)
		c4, h4, err := m.Lock(context.WithoutCancel(c2)) // keeps the owner, loses the end
		must(t, err)
		all := []context.Context{c1, c2, c3, c4}
		for i, h := range []*rlock.Hold{h1, h3, h4} {
			must(t, h.Unlock())
			for j, c := range all {
				if c.Err() != nil {
					t.Fatalf("after %d Unlocks context %d has ended: %v", i+1, j+1, context.Cause(c))
				}
			}
			if err := h.Unlock(); !errors.Is(err, rlock.ErrNotHeld) {
				t.Errorf("second Unlock: %v", err)
			}
		}
		must(t, h2.Unlock())
		for j, c := range all {
			if !errors.Is(c.Err(), context.Canceled) || context.Cause(c) != rlock.ErrReleased {
				t.Errorf("context %d: %v, cause %v; want ErrReleased", j+1, c.Err(), context.Cause(c))
			}
			child, stop := context.WithCancel(c)
			if context.Cause(child) != rlock.ErrReleased {
				t.Errorf("a child of context %d does not know the cause: %v", j+1, context.Cause(child))
			}
			stop()
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left in Redis: %q", keys)
		}
	})
}

// Values and deadlines of what a nested Lock was given stay visible in its section.
func TestSectionIsDerivedFromTheGivenContext(t *testing.T) {
	s := redistest.Mini(t)
	ses := dial(t, s, rlock.Config{})
	type key struct{}
	m := rlock.New(ses, "x")
	base, cancelBase := context.WithCancelCause(context.WithValue(context.Background(), key{}, "outer"))
	c1, h1, err := m.Lock(base)
	must(t, err)
	with, cancel := context.WithDeadline(context.WithValue(c1, key{}, "inner"), time.Now().Add(time.Hour))
	defer cancel()
	var sections []context.Context
	for range 3 { // the same Done: they share one derived context
		c2, h2, err := m.Lock(with)
		must(t, err)
		must(t, h2.Unlock())
		sections = append(sections, c2)
	}
	for _, c := range sections {
		if c.Value(key{}) != "inner" || c1.Value(key{}) != "outer" {
			t.Error("values are not those of the context given")
		}
		if d, ok := c.Deadline(); !ok || time.Until(d) > time.Hour {
			t.Error("the deadline is not that of the context given")
		}
	}
	why := errors.New("why")
	cancelBase(why)
	for _, c := range append(sections, c1) {
		if <-c.Done(); context.Cause(c) != why {
			t.Errorf("cause %v, want that of the outermost context", context.Cause(c))
		}
	}
	must(t, h1.Unlock()) // works although the ctx is done
	if keys := s.Keys(t); len(keys) != 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// Two sessions, many goroutines, an unguarded counter and a flag that is checked from
// outside the lock; every second section nests. Goroutines without a common ctx never
// share an owner (R28).
func TestExclusionFromOutside(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		const workers, rounds = 16, 25
		counter := 0
		var inside atomic.Int32
		var wg sync.WaitGroup
		for i := range workers {
			m := rlock.New([]*rlock.Session{a, b}[i%2], "x")
			wg.Go(func() {
				for r := range rounds {
					err := m.Do(ctx, func(ctx context.Context) error {
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d inside", n)
						}
						defer inside.Add(-1)
						read := counter
						runtime.Gosched()
						if r%2 == 0 {
							if err := m.Do(ctx, func(context.Context) error { return nil }); err != nil {
								return err
							}
						}
						counter = read + 1
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if counter != workers*rounds {
			t.Errorf("counter %d, want %d", counter, workers*rounds)
		}
		locktest.NothingLeft(t, s, a, b)
	})
}

func TestFencingTokensGrow(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{Lease: 10 * time.Second}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		var last int64
		for i := range 10 {
			m := rlock.New([]*rlock.Session{a, b}[i%2], "x", rlock.Fenced())
			lctx := ctx
			if i%3 == 0 {
				lctx = rlock.WithOwner(ctx, fmt.Sprint("request-", i))
			}
			section, h, err := m.Lock(lctx)
			must(t, err)
			if h.Token() <= last {
				t.Fatalf("token %d after %d", h.Token(), last)
			}
			last = h.Token()
			_, nested, err := m.Lock(section)
			must(t, err)
			if nested.Token() != last {
				t.Errorf("token of the nested hold %d, want %d", nested.Token(), last)
			}
			if got, _ := s.Do(t, "GET", "redisson_lock_token:{x}").AsInt64(); got != last {
				t.Errorf("Redis has token %d, want %d", got, last)
			}
			must(t, nested.Unlock())
			must(t, h.Unlock())
		}
		_, h, err := rlock.New(a, "x").Lock(ctx)
		must(t, err)
		if h.Token() != 0 {
			t.Errorf("a mutex that is not fenced has token %d", h.Token())
		}
		must(t, h.Unlock())
	})
}
