package fairlock_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An uncontended cycle is two scripts, a nested one two more, and nothing else is sent.
func TestUncontendedCostsTwoCommands(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ses, proxy := dialProxy(t, s, rlock.Config{})
		ctx := within(t, patience)
		for _, m := range []*fairlock.Mutex{fairlock.New(ses, "x"), fairlock.New(ses, "x", rlock.Fenced())} {
			for _, ctx := range []context.Context{ctx, rlock.WithOwner(ctx, "me")} {
				proxy.Reset()
				section, h, err := m.Lock(ctx)
				must(t, err)
				_, nested, err := m.TryLock(section)
				must(t, err)
				must(t, nested.Unlock())
				must(t, h.Unlock())
				if log := proxy.Log(); len(log) != 4 || proxy.Count("EVALSHA") != 4 {
					t.Errorf("a cycle with a nested one sent %q", log)
				}
			}
		}
	})
}

// ran returns how many commands the server has run since its statistics were reset, those
// inside scripts included, and how many of them were scripts.
func ran(t testing.TB, s *redistest.Server) (all, scripts int) {
	t.Helper()
	info, err := s.Do(t, "INFO", "commandstats").ToString()
	must(t, err)
	for _, m := range regexp.MustCompile(`cmdstat_([a-z|_]+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		n, err := strconv.Atoi(m[2])
		must(t, err)
		switch m[1] {
		case "evalsha", "eval":
			scripts += n
			all += n
		case "info", "config|resetstat", "ping", "hello", "client|setinfo":
		default:
			all += n
		}
	}
	return all, scripts
}

// What an acquisition costs does not depend on how many wait: neither the scripts that a
// session sends nor the commands that run inside them. Heartbeats are off here; what those
// cost the next test tells.
func TestCostDoesNotDependOnTheNumberOfWaiters(t *testing.T) {
	t.Parallel()
	var base float64
	for _, n := range []int{10, 100, 1000} {
		s := redistest.Real(t)
		ctx := within(t, 5*time.Minute)
		a, b := dial(t, s, silent()), dial(t, s, silent())
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		done := make(chan error, n)
		must(t, s.Do(t, "CONFIG", "RESETSTAT").Error())
		for i := range n {
			m := fairlock.New([]*rlock.Session{a, b}[i%2], "x")
			go func() {
				done <- m.Do(ctx, func(context.Context) error { return nil })
			}()
		}
		redistest.Eventually(t, 30*time.Second, "everybody to wait", func() bool {
			waiting, err := m.Waiters(ctx)
			must(t, err)
			return waiting == n
		})
		queueing, scripts := ran(t, s)
		if scripts > n {
			t.Errorf("%d waiters queued with %d scripts, want one each at most", n, scripts)
		}
		must(t, s.Do(t, "CONFIG", "RESETSTAT").Error())
		unlock(t, first)
		for range n {
			must(t, locktest.Get(t, done, 30*time.Second, "everybody to be served"))
		}
		all, scripts := ran(t, s)
		each := float64(all+queueing) / float64(n)
		t.Logf("%4d waiters: %.2f scripts and %.2f commands inside them for each acquisition (%.2f to queue)",
			n, 1+float64(scripts)/float64(n), each, float64(queueing)/float64(n))
		if base == 0 {
			base = each
		}
		if each > base*1.05 || scripts > n {
			t.Errorf("%d waiters: %.2f commands and %.2f scripts for each acquisition, with 10 waiters %.2f; want no more, and 2 scripts at most",
				n, each, 1+float64(scripts)/float64(n), base)
		}
		nothingLeft(t, s)
	}
}

// An idle waiter costs less than a command a second; many of one session on one lock cost
// little more (R15).
func TestIdleWaitersAreQuiet(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, n := range []int{1, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			ctx := within(t, 5*time.Minute)
			m := fairlock.New(dial(t, s, rlock.Config{}), "x")
			first := lock(t, ctx, m)
			ses, proxy := dialProxy(t, s, rlock.Config{})
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			var all []<-chan locked
			for range n {
				all = append(all, goLock(own, fairlock.New(ses, "x")))
			}
			queued(t, m, n)
			pause(1200 * time.Millisecond) // to get in step
			proxy.Reset()
			const d = 5 * time.Second
			pause(d)
			sent, heartbeats := proxy.Count(), locktest.Sent(proxy, runs("look"))
			t.Logf("%d waiters sent %d commands in %v", n, sent, d)
			batches := (n + 49) / 50
			if sent > batches*5+1 || sent > heartbeats { // one more heartbeat may have come since sent was read
				t.Errorf("%d waiters sent %d commands in %v, %d of them heartbeats; want less than one a second for each 200", n, sent, d, heartbeats)
			}
			if sent < 4 {
				t.Errorf("%d waiters sent %d commands in %v: who keeps their places?", n, sent, d)
			}
			queued(t, m, n)
			cancel()
			for _, c := range all {
				<-c
			}
			queued(t, m, 0)
			proxy.Reset()
			pause(1300 * time.Millisecond)
			if log := proxy.Log(); len(log) != 0 {
				t.Errorf("when nobody waits any more %q is sent", log)
			}
			unlock(t, first)
			nothingLeft(t, s)
		})
	}
}
