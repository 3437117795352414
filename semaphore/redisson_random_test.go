package semaphore_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Random cycles of Redisson's threads beside ours on the same permits: never more are out than the limit,
// each side is woken by the other, for our poll floor is out of reach; the permits of Java threads that die
// come back; and in the end all are there.
func TestRandomCyclesWithRedisson(t *testing.T) {
	const limit = 2
	names := []string{"s0", "s1"}
	var javas map[string]*locktest.Redisson
	locktest.Stress{
		Cycles:   6_000,
		Names:    names,
		Limit:    limit,
		Patience: 2 * time.Millisecond,
		Config:   rlock.Config{PollFloor: time.Hour},
		Begin: func(t *testing.T, s *redistest.Server) {
			javas = map[string]*locktest.Redisson{}
			for _, name := range names {
				must(t, s.Do(t, "SET", name, fmt.Sprint(limit)).Error())
				javas[name] = locktest.NewRedisson(t, s, "../testdata/redisson", "redisson_sc:{"+name+"}")
			}
		},
		Lock: func(a *locktest.Attempt) (*locktest.Taken, error) {
			n := a.Rand.IntN(2) + 1
			if a.Rand.IntN(3) == 0 {
				return javaPermits(a, javas[a.Name], n)
			}
			return a.Woken(func(a *locktest.Attempt) (*locktest.Taken, error) {
				giveBack, err := takePermits(a, n, limit)
				return &locktest.Taken{Weight: int32(n), Nest: runtime.Gosched, Unlock: giveBack}, err
			})
		},
		Left: func(t *testing.T, s *redistest.Server, sessions []*rlock.Session) {
			for _, name := range names {
				redistest.Eventually(t, 10*time.Second, "all permits to be there", func() bool {
					free, err := semaphore.New(sessions[0], name, limit).Available(t.Context())
					return free == limit && err == nil
				})
			}
			if keys := s.Keys(t); len(keys) != len(names) {
				t.Errorf("left are %q", keys)
			}
		},
	}.Run(t)
}

// javaPermits takes permits as a thread of Java's. One in sixteen dies, and theirs come back.
func javaPermits(a *locktest.Attempt, java *locktest.Redisson, n int) (*locktest.Taken, error) {
	taken := &locktest.Taken{Weight: int32(n), Nest: runtime.Gosched, Unlock: func() error { return nil }}
	dies := a.Rand.IntN(16) == 0
	ids := make([]string, n)
	for i := range ids {
		ids[i] = java.Thread()
	}
	zset, channel := "{"+a.Name+"}:timeout", "redisson_sc:{"+a.Name+"}"
	ms := func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }
	err := java.Take(a, func() (bool, time.Duration) {
		now, expiry := time.Now(), inf
		if dies {
			expiry = ms(now.Add(40 * time.Millisecond))
		}
		reply := java.Run("permit_acquire", []string{a.Name, zset, channel},
			append([]string{strconv.Itoa(n), expiry, ms(now), inf, "PUBLISH"}, ids...)...)
		if next, waits := strings.CutPrefix(reply, ":"); waits { // when a permit expires
			at, _ := strconv.ParseFloat(next, 64)
			return false, max(0, time.Until(time.UnixMilli(int64(at)))) + time.Millisecond
		}
		return reply == "OK", -1
	})
	if err != nil {
		return nil, err
	}
	if dies {
		taken.Weight = 0 // its lease may be over at any moment
		return taken, nil
	}
	taken.Unlock = func() error {
		for _, id := range ids {
			if got := java.Run("permit_release", []string{a.Name, channel, zset}, id, "1", ms(time.Now()), "PUBLISH"); got != "1" {
				a.T.Errorf("%s: Java released a permit, and was answered %s", a.Name, got)
			}
		}
		return nil
	}
	return taken, nil
}
