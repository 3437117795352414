package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// requests returns what Redis remembers of the requests to counters, and the key.
func requests(t testing.TB, s *redistest.Server) (key string, slots map[string]string) {
	t.Helper()
	for _, k := range s.Keys(t) {
		if !strings.HasPrefix(k, "relock_requests:") {
			continue
		}
		if key != "" {
			t.Errorf("%s and %s", key, k)
		}
		key = k
	}
	slots, err := s.Do(t, "HGETALL", key).AsStrMap()
	must(t, err)
	return key, slots
}

// What Redis remembers for a session that uses a Counter is bounded by how many requests are
// under way at once, however many there were.
func TestBusyCounterIsRememberedInOneKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 60*time.Second)
		c := semaphore.NewCounter(ses, "c")
		must(t, c.Add(ctx, 100))
		const callers = 4
		var done sync.WaitGroup
		for range callers {
			done.Go(func() {
				for range 100 {
					if err := c.Acquire(ctx, 1); err != nil {
						t.Error(err)
					}
					if err := c.Release(ctx, 1); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		key, slots := requests(t, s)
		if n := len(s.Keys(t)); n != 2 || len(slots) > callers {
			t.Errorf("%d keys, %q has %v; want two keys and at most %d requests", n, key, slots, callers)
		}
		if !s.IsMini() {
			bytes, err := s.Do(t, "MEMORY", "USAGE", key).AsInt64()
			must(t, err)
			if bytes > 300 { // docs/redisson.md
				t.Errorf("the key of %d requests takes %d bytes", len(slots), bytes)
			}
		}
	})
}

// A request that was given up in flight has its place until it was taken back, and no longer.
func TestGivenUpRequestsLeaveTheirPlace(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		must(t, s.Do(t, "SET", "c", "5").Error())
		c := semaphore.NewCounter(ses, "c")
		for i := range 5 {
			seen, release := p.HoldReply(locktest.Runs(src["take"]))
			ctx, cancel := context.WithCancel(within(t, 30*time.Second))
			done := start(func() error { return c.Acquire(ctx, 2) })
			locktest.Get(t, seen, 10*time.Second, "the attempt")
			cancel()
			is(t, "Acquire", locktest.Get(t, done, 10*time.Second, "Acquire"), rlock.ErrNotAcquired)
			must(t, second(s.Do(t, "PING").ToString()))
			release()
			redistest.Eventually(t, 10*time.Second, "the request to be taken back", func() bool { return value(t, s, "c") == "5" })
			redistest.Eventually(t, 10*time.Second, "the session to know it", func() bool { return semaphore.RequestsUnderWay(ses) == 0 })
			if _, slots := requests(t, s); len(slots) != 1 || slots["0"] != fmt.Sprintf("%d:undone", i+1) {
				t.Fatalf("Redis remembers %v", slots)
			}
		}
	})
}

// At the limit of its memory Redis takes back permits and what was taken from a counter, keeps
// permits alive, and refuses more.
func TestReleasesAtMaxmemory(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	s := redistest.Real(t)
	ses := dial(t, s, rlock.Config{Lease: 6 * time.Second})
	ctx := within(t, 30*time.Second)
	m, c := semaphore.New(ses, "x", 3), semaphore.NewCounter(ses, "c")
	section, p, err := m.Acquire(ctx, 2)
	must(t, err)
	_, leased, err := m.Acquire(ctx, 1, rlock.Lease(time.Minute))
	must(t, err)
	must(t, second(c.TrySet(ctx, 3)))
	must(t, c.Acquire(ctx, 2))
	must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	defer func() { must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "0").Error()) }()
	if err := s.Do(t, "SET", "k", "v").Error(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("SET: %v, want OOM", err)
	}
	must(t, leased.Extend(ctx, 2*time.Minute))
	expiry := func() string { return fmt.Sprint(s.Do(t, "ZRANGE", zset("x"), "0", "0", "WITHSCORES").ToAny()) }
	before := expiry()
	redistest.Eventually(t, 10*time.Second, "a renewal", func() bool { return expiry() != before })
	must(t, context.Cause(section))
	must(t, p.Release())
	must(t, leased.Release())
	must(t, c.Release(ctx, 2))
	available(t, ctx, c, 3)
	available(t, ctx, m, 3)
	for _, n := range []int{1, 2} {
		if _, _, err := m.TryAcquire(ctx, n); !errors.Is(err, rlock.ErrUnavailable) || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("TryAcquire of %d at the limit: %v, want ErrUnavailable and OOM", n, err)
		}
		waits, stop := context.WithTimeout(ctx, time.Second) // for the answer to one attempt
		if _, _, err := m.Acquire(waits, n); !errors.Is(err, rlock.ErrUnavailable) || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("Acquire of %d at the limit: %v, want ErrUnavailable and OOM", n, err)
		}
		stop()
	}
	available(t, ctx, m, 3)
}
