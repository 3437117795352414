package rlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// observer looks at a lock as any other client would: it returns the TTL, the number of
// owners and the count, all at one instant.
const observer = `
local f = redis.call('HGETALL', KEYS[1])
return {redis.call('PTTL', KEYS[1]), #f / 2, tonumber(f[2] or 0)}`

// A look at the hash, at any moment, shows at most one owner, a count that is not
// 0, and a TTL: a Java waiter would wait for ever without one.
func TestHashIsRightAtEveryLook(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{Lease: 5 * time.Second}), dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		var workers, watcher sync.WaitGroup
		var inside atomic.Int32
		done := make(chan struct{})
		looks := 0
		watcher.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				v, err := s.Do(t, "EVAL", observer, "1", "x").AsIntSlice()
				if err != nil {
					t.Error(err)
					return
				}
				looks++
				if ttl, owners, count := v[0], v[1], v[2]; ttl == -1 || owners > 1 || (owners == 1 && count < 1) || ttl > 60_000 {
					t.Errorf("TTL %d, %d owners, count %d", ttl, owners, count)
				}
			}
		})
		cycles := 150
		if testing.Short() {
			cycles /= 3
		}
		for w := range 8 {
			rng := rand.New(rand.NewPCG(7, uint64(w)))
			ses := []*rlock.Session{a, b}[w%2]
			workers.Go(func() {
				for range cycles {
					randomCycle(t, ctx, rng, rlock.New(ses, "x"), &inside)
				}
			})
		}
		workers.Wait()
		close(done)
		watcher.Wait()
		t.Logf("%d looks", looks)
	})
}

// An idle session costs a few goroutines, and none for what it holds.
func TestIdleSessionHasFewGoroutines(t *testing.T) {
	s := redistest.Real(t)
	client := s.Client(t)
	must(t, client.Do(context.Background(), client.B().Ping().Build()).Error())
	s.Keys(t)
	before := runtime.NumGoroutine()
	ses, err := rlock.NewSession(context.Background(), client, rlock.Config{})
	must(t, err)
	// The watchdog, the hub, its one connection, and rueidis's reader, writer and
	// PING timer of that.
	const most = 8
	redistest.Eventually(t, 5*time.Second, "the session to settle", func() bool {
		return runtime.NumGoroutine()-before <= most
	})
	t.Logf("%d goroutines for an idle session", runtime.NumGoroutine()-before)
	for i := range 200 {
		_, _, err := rlock.New(ses, fmt.Sprint(i)).Lock(context.Background())
		must(t, err)
	}
	if n := runtime.NumGoroutine() - before; n > most {
		t.Errorf("%d goroutines with 200 locks held", n)
	}
	must(t, ses.Close())
	redistest.Eventually(t, 5*time.Second, "the session's goroutines to end", func() bool {
		return runtime.NumGoroutine() <= before
	})
}
