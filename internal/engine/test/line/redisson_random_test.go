package line_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Random cycles of Redisson's threads beside ours on the same locks: one is inside at a time; each side is
// woken by the other, for our poll floor is out of reach; a Java thread that dies keeps nobody out beyond
// its lease; and nothing is left but the token.
func TestRandomCyclesWithRedisson(t *testing.T) {
	names := []string{"name-0", "name-1"}
	var javas map[string]*locktest.Redisson
	locktest.Stress{
		Cycles:   6_000,
		Names:    names,
		Limit:    1,
		Patience: 3 * time.Millisecond,
		Config:   rlock.Config{PollFloor: time.Hour},
		Begin: func(t *testing.T, s *redistest.Server) {
			javas = map[string]*locktest.Redisson{}
			for _, name := range names {
				javas[name] = locktest.NewRedisson(t, s, "../../../../testdata/redisson", "redisson_lock__channel:{"+name+"}")
			}
		},
		Lock: func(a *locktest.Attempt) (*locktest.Taken, error) {
			switch {
			case a.Rand.IntN(3) == 0:
				return javaMutex(a, javas[a.Name])
			case a.Name == "name-1":
				return a.Woken(func(a *locktest.Attempt) (*locktest.Taken, error) {
					return a.Mutex(rlock.New(a.Session, a.Name, rlock.Fenced()))
				})
			}
			return a.Woken(func(a *locktest.Attempt) (*locktest.Taken, error) {
				return a.Mutex(rlock.New(a.Session, a.Name))
			})
		},
		Left: func(t *testing.T, s *redistest.Server, sessions []*rlock.Session) {
			must(t, s.Do(t, "DEL", "redisson_lock_token:{name-1}").Error())
			redistest.Eventually(t, 10*time.Second, "everything to be given back", func() bool {
				for _, ses := range sessions {
					if held, asking, locks, scheduled, active := locktest.Books(ses); held+asking+locks+scheduled+active != 0 {
						return false
					}
				}
				return len(s.Keys(t)) == 0
			})
		},
	}.Run(t)
}

// javaMutex takes the lock as a thread of Java's, once or twice. One in eight dies.
func javaMutex(a *locktest.Attempt, java *locktest.Redisson) (*locktest.Taken, error) {
	owner, lease, dies := java.Thread(), "60000", a.Rand.IntN(8) == 0
	if dies {
		lease = "40"
	}
	lock := func() string { return java.Run("lock", []string{a.Name}, lease, owner) }
	err := java.Take(a, func() (bool, time.Duration) {
		reply := lock()
		ms, _ := strconv.ParseInt(reply, 10, 64)
		return reply == "", time.Duration(ms) * time.Millisecond
	})
	if err != nil {
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
		for left := holds - 1; left >= 0; left-- {
			want := "1"
			if left > 0 {
				want = "0"
			}
			keys := []string{a.Name, "redisson_lock__channel:{" + a.Name + "}"}
			if got := java.Unlock("unlock", keys, "0", lease, owner, "PUBLISH"); got != want {
				a.T.Errorf("%s: a Java thread unlocked, and was answered %q with %d holds left", a.Name, got, left)
			}
		}
		return nil
	}}, nil
}
