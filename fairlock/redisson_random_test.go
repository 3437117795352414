package fairlock_test

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Random cycles of Redisson's threads beside ours on the same locks, those that wait in Redisson's own fair
// queue among them: one is inside at a time, whichever queue it came from; all get in, those behind waiters
// and owners of Java's that died too; and nothing of ours is left.
func TestRandomCyclesWithRedisson(t *testing.T) {
	names := []string{"name-0", "name-1"}
	var javas map[string]*locktest.Redisson
	locktest.Stress{
		Cycles:   4000,
		Names:    names,
		Limit:    1,
		Patience: 4 * time.Millisecond,
		// A waiter behind a Java owner is told nothing, and looks at its next heartbeat, a fifth of this.
		Config: rlock.Config{PollFloor: time.Hour, QueueLease: 5 * time.Second},
		Begin: func(t *testing.T, s *redistest.Server) {
			javas = map[string]*locktest.Redisson{}
			for _, name := range names {
				javas[name] = locktest.NewRedisson(t, s, "../testdata/redisson", "redisson_lock__channel:{"+name+"}")
			}
		},
		Lock: func(a *locktest.Attempt) (*locktest.Taken, error) {
			if a.Rand.IntN(4) == 0 {
				return javaThread(a, javas[a.Name])
			}
			var opts []rlock.MutexOption
			if a.Name == "name-1" {
				opts = append(opts, rlock.Fenced())
			}
			return a.Woken(func(a *locktest.Attempt) (*locktest.Taken, error) {
				return a.Mutex(fairlock.New(a.Session, a.Name, opts...))
			})
		},
		Left: func(t *testing.T, s *redistest.Server, _ []*rlock.Session) {
			redistest.Eventually(t, patience, "nothing of ours to be left behind", func() bool {
				return !slices.ContainsFunc(s.Keys(t), func(key string) bool {
					switch key { // Redisson's queue has no TTL
					case "redisson_lock_token:{name-1}", "redisson_lock_queue:{name-0}", "redisson_lock_queue:{name-1}",
						"redisson_lock_timeout:{name-0}", "redisson_lock_timeout:{name-1}":
						return false
					}
					return true
				})
			})
		},
	}.Run(t)
}

// javaThread takes the lock as a thread of Java's, by its plain or its fair lock. One in eight dies
// inside. One that gives up stays in the queue of the fair lock until its time is over, as one that died.
func javaThread(a *locktest.Attempt, java *locktest.Redisson) (*locktest.Taken, error) {
	const silent = 100 // ms that a waiter of its fair lock may be silent
	owner, lease, dies := java.Thread(), "60000", a.Rand.IntN(8) == 0
	if dies {
		lease = "40"
	}
	channel, queue, timeouts := "redisson_lock__channel:{"+a.Name+"}", "redisson_lock_queue:{"+a.Name+"}", "redisson_lock_timeout:{"+a.Name+"}"
	in := func(ms int64) string { return strconv.FormatInt(time.Now().UnixMilli()+ms, 10) }
	lock := func() string { return java.Run("lock", []string{a.Name}, lease, owner) }
	unlock := func() string {
		return java.Unlock("unlock", []string{a.Name, channel}, "0", lease, owner, "PUBLISH")
	}
	if a.Rand.IntN(2) == 0 {
		lock = func() string {
			return java.Run("fair_lock", []string{a.Name, queue, timeouts}, lease, owner, strconv.Itoa(silent), in(0))
		}
		unlock = func() string {
			return java.Unlock("fair_unlock", []string{a.Name, queue, timeouts, channel}, "0", lease, owner, in(0), "PUBLISH")
		}
	}
	err := java.Take(a, func() (bool, time.Duration) {
		return lock() == "", 10 * time.Millisecond // neither kind of fair lock tells the other's waiters
	})
	if err != nil {
		// Its time would begin when the lease ends that stood as it came, and nobody would be let in for
		// 60 s: it begins now, as if it had come later.
		java.Do("ZADD", timeouts, "XX", in(silent), owner)
		return nil, err
	}
	if dies { // its lease may be over at any moment
		return &locktest.Taken{Unlock: func() error { return nil }}, nil
	}
	holds := 1 + a.Rand.IntN(2)
	if holds == 2 && lock() != "" {
		a.T.Error("a Java thread did not get into what it holds")
	}
	return &locktest.Taken{Weight: 1, Nest: runtime.Gosched, Unlock: func() error {
		for range holds {
			if unlock() == "" {
				a.T.Errorf("%s: a hold of a Java thread was gone", a.Name)
			}
		}
		return nil
	}}, nil
}
