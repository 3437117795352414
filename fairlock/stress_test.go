package fairlock_test

import (
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Random cycles, some of them with a plain mutex on the same name and some with tokens,
// leave nothing but the tokens' counters.
func TestRandomCyclesLeaveNothing(t *testing.T) {
	fenced := map[string]bool{"name-0": true, "name-1": true}
	locktest.Stress{
		Cycles:   4000,
		Names:    []string{"name-0", "name-1", "name-2", "name-3"},
		Limit:    1,
		Patience: 4 * time.Millisecond,
		// A grant stands for a quarter of the QueueLease: longer than a busy machine takes to
		// confirm it, for no lock may be lost.
		Config: rlock.Config{PollFloor: 50 * time.Millisecond, QueueLease: 5 * time.Minute, Lease: 5 * time.Minute},
		Lock: func(a *locktest.Attempt) (*locktest.Taken, error) {
			switch {
			case fenced[a.Name]:
				return a.Mutex(fairlock.New(a.Session, a.Name, rlock.Fenced()))
			case a.Name == "name-3" && a.Rand.IntN(36) == 0:
				return a.Mutex(rlock.New(a.Session, a.Name))
			}
			return a.Mutex(fairlock.New(a.Session, a.Name))
		},
		Left: func(t *testing.T, s *redistest.Server, _ []*rlock.Session) {
			nothingLeft(t, s, "redisson_lock_token:{name-0}", "redisson_lock_token:{name-1}")
		},
	}.Run(t)
}
