package rlock_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Random cycles leave nothing, also not in the books of the sessions.
func TestRandomCyclesLeaveNothing(t *testing.T) {
	st := randomly(func(a *locktest.Attempt) *rlock.Mutex { return rlock.New(a.Session, a.Name) })
	st.Cycles = 100_000
	st.Names = []string{"name-0", "name-1", "name-2", "name-3", "name-4"}
	st.Left = func(t *testing.T, s *redistest.Server, sessions []*rlock.Session) {
		locktest.NothingLeft(t, s, sessions...)
	}
	st.Run(t)
}

// Neither do sessions that poll, beside one another.
func TestRandomCyclesThatPoll(t *testing.T) {
	st := randomly(func(a *locktest.Attempt) *rlock.Mutex { return rlock.New(a.Session, a.Name) })
	st.Cycles = 20_000
	st.Names = []string{"name-0", "name-1", "name-2"}
	st.Config.Polling = rlock.Exponential(time.Millisecond, 10*time.Millisecond)
	st.Left = func(t *testing.T, s *redistest.Server, sessions []*rlock.Session) {
		locktest.NothingLeft(t, s, sessions...)
	}
	st.Run(t)
}

// randomly is what random cycles of mutexes have in common.
func randomly(mutex func(a *locktest.Attempt) *rlock.Mutex) locktest.Stress {
	return locktest.Stress{
		Limit:    1,
		HandOver: true,
		Patience: 2 * time.Millisecond,
		Lock:     func(a *locktest.Attempt) (*locktest.Taken, error) { return a.Mutex(mutex(a)) },
	}
}

// randomCycle does one random thing with m and reports whether it held it.
func randomCycle(t *testing.T, ctx context.Context, rng *rand.Rand, m *rlock.Mutex, inside *atomic.Int32) bool {
	st := randomly(func(*locktest.Attempt) *rlock.Mutex { return m })
	return st.Cycle(&locktest.Attempt{T: t, Ctx: ctx, Rand: rng}, inside)
}
