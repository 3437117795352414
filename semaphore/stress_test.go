package semaphore_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Random cycles of both kinds, each for a random number of permits: never more inside than
// the limit, and in the end nothing is left but the semaphores themselves, with all they
// had, and requests to counters, which expire (R6).
func TestRandomCyclesLeaveNothing(t *testing.T) {
	const limit = 4
	leased, counted := []string{"s0", "s1", "s2"}, []string{"c0", "c1", "c2"}
	all := append(leased, counted...)
	locktest.Stress{
		Cycles:   20_000,
		Names:    all,
		Limit:    limit,
		Patience: 2 * time.Millisecond,
		Setup: func(t *testing.T, ctx context.Context, ses *rlock.Session) {
			for _, name := range counted {
				_, err := semaphore.NewCounter(ses, name).TrySet(ctx, limit)
				must(t, err)
			}
		},
		Lock: func(a *locktest.Attempt) (*locktest.Taken, error) {
			n := a.Rand.IntN(limit) + 1
			take := takePermits
			if a.Name[0] == 'c' {
				take = takeFromCounter
			}
			giveBack, err := take(a, n, limit)
			return &locktest.Taken{Weight: int32(n), Nest: runtime.Gosched, Unlock: giveBack}, err
		},
		Left: func(t *testing.T, s *redistest.Server, sessions []*rlock.Session) {
			redistest.Eventually(t, 10*time.Second, "everything to be given back", func() bool {
				for _, name := range all {
					if value(t, s, name) != fmt.Sprint(limit) {
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
				if err != nil || ttl == -1 || !strings.HasPrefix(key, "relock_requests:") {
					t.Errorf("%s is left, with a TTL of %d, %v", key, ttl, err)
				}
			}
			silent(t, s, sessions...)
		},
	}.Run(t)
}

func takePermits(a *locktest.Attempt, n, limit int) (giveBack func() error, err error) {
	m := semaphore.New(a.Session, a.Name, limit)
	get := m.Acquire
	if a.Try {
		get = m.TryAcquire
	}
	_, p, err := get(a.Ctx, n, a.Opts...)
	if err != nil {
		return nil, err
	}
	return p.Release, nil
}

func takeFromCounter(a *locktest.Attempt, n, _ int) (giveBack func() error, err error) {
	if a.Leased {
		a.Opts = nil // a counter leases nothing
	}
	c := semaphore.NewCounter(a.Session, a.Name)
	if a.Try {
		err = c.TryAcquire(a.Ctx, n)
	} else {
		err = c.Acquire(a.Ctx, n, a.Opts...)
	}
	return func() error { return c.Release(context.WithoutCancel(a.Ctx), n) }, err
}
