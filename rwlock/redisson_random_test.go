package rwlock_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Random cycles of Redisson's threads beside ours on the same locks: a writer of either is alone;
// each side is woken by the other, for our poll floor is out of reach; Java's writers that die keep
// nobody out beyond their leases; and nothing is left. (Readers do not die here: when another reader of
// Java's leaves, it cuts the lock's TTL to that of the dead one, and tells no waiter.)
func TestRandomCyclesWithRedisson(t *testing.T) {
	names := []string{"name-0", "name-1"}
	var javas map[string]*locktest.Redisson
	locktest.Stress{
		Cycles:   6_000,
		Names:    names,
		Limit:    aWriter,
		Patience: 3 * time.Millisecond,
		Config:   rlock.Config{PollFloor: time.Hour},
		Begin: func(t *testing.T, s *redistest.Server) {
			javas = map[string]*locktest.Redisson{}
			for _, name := range names {
				javas[name] = locktest.NewRedisson(t, s, "../testdata/redisson", "redisson_rwlock:{"+name+"}")
			}
		},
		Lock: func(a *locktest.Attempt) (*locktest.Taken, error) {
			if a.Rand.IntN(3) > 0 {
				return a.Woken(takeSide)
			}
			return javaSide(a, javas[a.Name])
		},
		Left: func(t *testing.T, s *redistest.Server, _ []*rlock.Session) {
			nothingLeftBut(t, s, "redisson_rwlock:")
		},
	}.Run(t)
}

// javaSide takes a random side as a thread of Java's, once or twice. One writer in eight dies.
func javaSide(a *locktest.Attempt, java *locktest.Redisson) (*locktest.Taken, error) {
	owner, lease, dies := java.Thread(), "60000", false
	tag, channel := "{"+a.Name+"}", "redisson_rwlock:{"+a.Name+"}"
	timeouts := tag + ":" + owner + ":rwlock_timeout"
	taken := &locktest.Taken{Weight: 1, Nest: runtime.Gosched}
	lock := func() string {
		return java.Run("read_lock", []string{a.Name, timeouts}, lease, owner, owner+":write")
	}
	unlock := func() string {
		return java.Unlock("read_unlock", []string{a.Name, channel, timeouts, tag}, "0", owner, "PUBLISH")
	}
	if a.Rand.IntN(3) == 0 {
		taken.Weight = aWriter
		if dies = a.Rand.IntN(8) == 0; dies {
			lease = "40"
		}
		lock = func() string { return java.Run("write_lock", []string{a.Name}, lease, owner+":write") }
		unlock = func() string {
			return java.Unlock("write_unlock", []string{a.Name, channel}, "1", lease, owner+":write", "PUBLISH")
		}
	}
	err := java.Take(a, func() (bool, time.Duration) {
		reply := lock()
		ms, _ := strconv.ParseInt(reply, 10, 64)
		return reply == "", time.Duration(ms) * time.Millisecond
	})
	if err != nil {
		return nil, err
	}
	taken.Unlock = func() error { return nil }
	if dies {
		taken.Weight = 0 // its lease may be over at any moment
		return taken, nil
	}
	holds := 1 + a.Rand.IntN(2)
	if holds == 2 && lock() != "" {
		a.T.Error("a Java thread did not get into what it holds")
	}
	taken.Unlock = func() error {
		for range holds {
			if unlock() == "" {
				a.T.Errorf("%s: a hold of a Java thread was gone", a.Name)
			}
		}
		return nil
	}
	return taken, nil
}
