package redisson

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
)

// multiRows: a multi-lock against Redisson's RedissonMultiLock, which takes its locks in the
// order given.
var multiRows = []row{
	{"AllOrNone", multiAllOrNone},
	{"HoldEachOther", multiHoldEachOther},
	{"OppositeOrders", multiOppositeOrders},
}

// pair returns the names of two locks, and what both sides call them: Go takes them in the
// order of their names, and Java in the other order.
func pair(t testing.TB, s *rlock.Session) (a, b string, ours *multilock.Mutex, theirs string) {
	name := redistest.Name(t)
	a, b = name+"-a", name+"-b"
	return a, b, multilock.New(rlock.New(s, b), rlock.New(s, a)), b + "," + a
}

func multiAllOrNone(t *testing.T, e *env) {
	s, j := e.session(t, patient), e.java.thread(t)
	a, b, ours, theirs := pair(t, s.Session)
	_, h, err := ours.TryLock(t.Context())
	locktest.Must(t, err)
	j.want("false", "multi", theirs, "try")
	locktest.Must(t, h.Unlock())
	j.want("true", "multi", theirs, "try")
	_, _, err = ours.TryLock(t.Context())
	locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
	j.do("multi", theirs, "unlock")
	// One of the locks is held: neither side keeps the other one.
	j.do("lock", b, "lock")
	_, _, err = ours.Lock(t.Context(), rlock.Wait(100*time.Millisecond))
	locktest.Is(t, "Lock", err, rlock.ErrNotAcquired)
	j.want("false", "lock", a, "locked")
	e.other.thread(t).want("false", "multi", theirs, "try")
	j.want("false", "lock", a, "locked")
	j.do("lock", b, "unlock")
}

// Java holds b and waits for a. If Go gets a before it, they hold what the other one waits for,
// until one gives way.
func multiHoldEachOther(t *testing.T, e *env) {
	s, j, third := e.session(t, rlock.Config{}), e.java.thread(t), e.other.thread(t)
	a, b, ours, theirs := pair(t, s.Session)
	third.do("lock", a, "lock")
	java := j.start("multi", theirs, "lock")
	redistest.Eventually(t, answerTimeout, "Java to hold b", func() bool {
		return third.do("lock", b, "locked") == "true"
	})
	mine := make(chan error, 1)
	ctx := locktest.Within(t, time.Minute)
	go func() { mine <- ours.Do(ctx, func(context.Context) error { return nil }) }()
	redistest.Eventually(t, answerTimeout, "Go to wait for a", func() bool { return s.attempts(a) >= 2 })
	began := time.Now()
	third.do("lock", a, "unlock")
	wokenJava(t, java)
	j.do("multi", theirs, "unlock")
	locktest.Must(t, locktest.Get(t, mine, time.Minute, "Go to have both"))
	t.Logf("both have had the locks after %v", time.Since(began).Round(time.Millisecond))
}

// Java takes b and then a, Go a and then b, again and again: no deadlock, and nobody is inside
// with another.
func multiOppositeOrders(t *testing.T, e *env) {
	const rounds = 15
	s := e.session(t, rlock.Config{})
	a, _, ours, theirs := pair(t, s.Session)
	done := make(chan error, 1)
	ctx := locktest.Within(t, 3*time.Minute)
	go func() {
		for range rounds {
			err := ours.Do(ctx, func(context.Context) error {
				time.Sleep(time.Millisecond)
				return nil
			})
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	began := time.Now()
	j := e.java.thread(t)
	for range rounds {
		locktest.Must(t, locktest.Get(t, j.start("multi", theirs, "lock"), time.Minute, "Java to have both").err)
		j.want("true", "lock", a, "mine")
		j.do("multi", theirs, "unlock")
	}
	locktest.Must(t, locktest.Get(t, done, time.Minute, "Go to have had both"))
	t.Logf("%d rounds of each side in %v", rounds, time.Since(began).Round(time.Millisecond))
}
