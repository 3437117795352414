package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Random cycles of acquire, try, give up, cancel and release, of both kinds, in many
// goroutines of three sessions over few names: never more inside than the limit, and in the
// end nothing is left but the semaphores themselves, with all they had, and requests to
// counters, which expire (R6). RELOCK_STRESS is the number of cycles.
func TestRandomCyclesLeaveNothing(t *testing.T) {
	total := 20_000
	if v := os.Getenv("RELOCK_STRESS"); v != "" {
		n, err := strconv.Atoi(v)
		must(t, err)
		total = n
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		total := total
		if s.IsMini() {
			total /= 10 // scripts are forty times slower there
		}
		const names, workers, limit = 3, 24, 4
		ctx := within(t, 8*time.Minute)
		var sessions []*rlock.Session
		for range 3 {
			sessions = append(sessions, dial(t, s, rlock.Config{}))
		}
		for i := range names {
			_, err := semaphore.NewCounter(sessions[0], fmt.Sprint("c", i)).TrySet(ctx, limit)
			must(t, err)
		}
		s.Keys(t) // the helper's own connection is not to be counted
		before := runtime.NumGoroutine()
		var inside [2 * names]atomic.Int64
		var done, got atomic.Int64
		var wg sync.WaitGroup
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		for w := range workers {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			ses := sessions[w%len(sessions)]
			wg.Go(func() {
				for done.Add(1) <= int64(total) && !t.Failed() {
					i := rng.IntN(names)
					kind := func() (what, *atomic.Int64) {
						if rng.IntN(2) == 0 {
							return leased(ses, fmt.Sprint("s", i), limit), &inside[i]
						}
						return counted(ses, fmt.Sprint("c", i)), &inside[names+i]
					}
					what, inside := kind()
					if cycle(t, ctx, rng, what, inside, limit) {
						got.Add(1)
					}
				}
			})
		}
		wg.Wait()
		redistest.Eventually(t, 10*time.Second, "everything to be given back", func() bool {
			for i := range names {
				if value(t, s, fmt.Sprint("s", i)) != fmt.Sprint(limit) || value(t, s, fmt.Sprint("c", i)) != fmt.Sprint(limit) {
					return false
				}
			}
			return true
		})
		for _, key := range s.Keys(t) {
			if len(key) == 2 { // s0, c0 and so on
				continue
			}
			ttl, err := s.Do(t, "PTTL", key).AsInt64()
			if err != nil || ttl == -1 || !strings.HasPrefix(key, "relock_request:") {
				t.Errorf("%s is left, with a TTL of %d, %v", key, ttl, err)
			}
		}
		silent(t, s, sessions...)
		redistest.Eventually(t, 10*time.Second, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
		t.Logf("%d cycles, %d acquired", total, got.Load())
	})
}

// what takes n of something, and returns how to give it back.
type what func(ctx context.Context, try bool, n int, opts ...rlock.LockOption) (giveBack func() error, err error)

func leased(ses *rlock.Session, name string, limit int) what {
	m := semaphore.New(ses, name, limit)
	return func(ctx context.Context, try bool, n int, opts ...rlock.LockOption) (func() error, error) {
		get := m.Acquire
		if try {
			get = m.TryAcquire
		}
		_, p, err := get(ctx, n, opts...)
		if err != nil {
			return nil, err
		}
		return p.Release, nil
	}
}

func counted(ses *rlock.Session, name string) what {
	c := semaphore.NewCounter(ses, name)
	return func(ctx context.Context, try bool, n int, opts ...rlock.LockOption) (func() error, error) {
		var err error
		if try {
			err = c.TryAcquire(ctx, n)
		} else {
			err = c.Acquire(ctx, n, opts...)
		}
		return func() error { return c.Release(context.WithoutCancel(ctx), n) }, err
	}
}

// cycle does one random thing and reports whether it got what it wanted.
func cycle(t *testing.T, ctx context.Context, rng *rand.Rand, take what, inside *atomic.Int64, limit int64) bool {
	var opts []rlock.LockOption
	cancel := context.CancelFunc(func() {})
	try := false
	switch rng.IntN(6) {
	case 0:
		try = true
	case 1:
		opts = append(opts, rlock.Wait(time.Duration(rng.IntN(2000))*time.Microsecond))
	case 2:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
	case 3:
		ctx, cancel = context.WithCancel(ctx)
		yields := rng.IntN(50)
		go func() {
			for range yields {
				runtime.Gosched()
			}
			cancel()
		}()
	}
	defer cancel()
	n := rng.IntN(int(limit)) + 1
	giveBack, err := take(ctx, try, n, opts...)
	if err != nil {
		if !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire: %v", err)
		}
		return false
	}
	if now := inside.Add(int64(n)); now > limit {
		t.Errorf("%d inside", now)
	}
	runtime.Gosched()
	inside.Add(int64(-n))
	if err := giveBack(); err != nil {
		t.Errorf("release: %v", err)
	}
	return true
}
