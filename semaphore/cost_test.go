package semaphore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/locktest"
	"relock/internal/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// An uncontended cycle is two scripts and nothing else, also the very first one.
func TestUncontendedCostsTwoCommands(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		m, c := semaphore.New(ses, "x", 5), semaphore.NewCounter(ses, "c")
		must(t, s.Do(t, "SET", "c", "5").Error())
		p.Reset()
		for i := 1; i <= 5; i++ {
			_, held, err := m.Acquire(ctx, i)
			must(t, err)
			must(t, held.Release())
			if log := p.Log(); len(log) != 2*i || p.Count("EVALSHA") != 2*i {
				t.Errorf("%d cycles sent %q", i, log)
			}
		}
		p.Reset()
		for i := 1; i <= 5; i++ {
			must(t, c.Acquire(ctx, i))
			must(t, c.Release(ctx, i))
			if log := p.Log(); len(log) != 2*i || p.Count("EVALSHA") != 2*i {
				t.Errorf("%d cycles of a counter sent %q", i, log)
			}
		}
		silent(t, s, ses)
	})
}

// What an acquisition costs does not depend on how many goroutines of the session wait:
// one script to get in, one to get out, and at most one by which the next in line learns
// that it has to wait.
func TestWaitersOfASessionAreOneContender(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, limit := range []int{1, 4} {
			for _, n := range []int{10, 1000} {
				contend(t, s, limit, n)
			}
		}
	})
}

// contend lets n goroutines of a session wait for a permit each, and counts the scripts
// that it takes to serve them.
func contend(t *testing.T, s *redistest.Server, limit, n int) {
	trace, waiting := locktest.Waiting()
	cfg := slow()
	cfg.Trace = trace
	ses, p := locktest.DialProxy(t, s, cfg)
	ctx := within(t, 60*time.Second)
	name := fmt.Sprint("x", limit, "-", n)
	_, foreign, err := semaphore.New(dial(t, s, slow()), name, limit).Acquire(ctx, limit)
	must(t, err)
	p.Reset()
	m := semaphore.New(ses, name, limit)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := m.Do(ctx, 1, func(section context.Context) error {
				time.Sleep(time.Millisecond) // the work; long enough for the next to find out
				return section.Err()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range n {
		locktest.Get(t, waiting, 20*time.Second, "everybody to wait")
	}
	if got := p.Count(); got != 3 {
		t.Errorf("%d waiters sent %d commands, want try, subscribe, try: %q", n, got, p.Log())
	}
	p.Reset()
	must(t, foreign.Release())
	wg.Wait()
	got := p.Count("EVALSHA")
	t.Logf("limit %d, %d waiters: %.2f scripts for one to get in and out", limit, n, float64(got)/float64(n))
	if got > 3*n+limit {
		t.Errorf("%d acquisitions sent %d scripts", n, got)
	}
}

// One release makes each waiting session ask at most once, and an idle waiter costs less
// than one command a second (R15).
func TestReleaseCausesOneAttemptPerSession(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		waitCtx, stop := context.WithCancel(ctx)
		holder := semaphore.New(dial(t, s, slow()), "x", 3)
		_, one, err := holder.Acquire(ctx, 1)
		must(t, err)
		_, two, err := holder.Acquire(ctx, 2)
		must(t, err)
		attempts := make(chan string, 100)
		var wg sync.WaitGroup
		const sessions, each = 4, 8
		for i := range sessions {
			trace, waiting := locktest.Waiting()
			trace.Attempt = func(string, string, bool, error) { attempts <- fmt.Sprint(i) }
			cfg := slow()
			cfg.Trace = trace
			m := semaphore.New(dial(t, s, cfg), "x", 3)
			for range each {
				wg.Go(func() {
					_, _, err := m.Acquire(waitCtx, 3)
					is(t, "a waiter", err, rlock.ErrNotAcquired)
				})
			}
			for range each {
				locktest.Get(t, waiting, 10*time.Second, "everybody to wait")
			}
		}
		for range 2 * sessions { // try, subscribe, try
			locktest.Get(t, attempts, 10*time.Second, "the first attempts")
		}
		must(t, one.Release())
		seen := map[string]bool{}
		for range sessions {
			who := locktest.Get(t, attempts, 10*time.Second, "each session to look")
			if seen[who] {
				t.Errorf("session %s asked twice", who)
			}
			seen[who] = true
		}
		select {
		case who := <-attempts:
			t.Errorf("session %s asked once more", who)
		case <-time.After(300 * time.Millisecond): // nothing is to come
		}
		stop()
		wg.Wait()
		must(t, two.Release())
	})
}

// A renewal bounds the permits that one script renews, and no goroutine is needed for any.
func TestRenewalsAreBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 3 * time.Second})
		ctx := within(t, 60*time.Second)
		m := semaphore.New(ses, "x", 1000)
		var sections []context.Context
		var held []*semaphore.Permits
		for range 20 {
			section, h, err := m.Acquire(ctx, 50)
			must(t, err)
			sections, held = append(sections, section), append(held, h)
		}
		p.Reset()
		match := locktest.Runs(src["renew"])
		sets := func() (all, most int) {
			for _, line := range p.Log() {
				if match(strings.SplitN(line, " ", 3)) {
					n := strings.Count(line, " 50:") // what the args of a set begin with
					all, most = all+n, max(most, n)
				}
			}
			return all, most
		}
		redistest.Eventually(t, 10*time.Second, "everything to be renewed", func() bool { all, _ := sets(); return all >= len(held) })
		if _, most := sets(); most > 4 {
			t.Errorf("a script renewed %d permits, want at most 200", 50*most)
		}
		for i, h := range held {
			must(t, sections[i].Err())
			must(t, h.Release())
		}
	})
}
