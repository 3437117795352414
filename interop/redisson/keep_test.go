package redisson

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// keepRows are what Java meets at a lock that a Go session keeps when it has left it: Java cannot ask for it.
func keepRows() (rows []row) {
	for java, of := range map[string]func(*rlock.Session, string, rlock.MutexOption) mutex{
		"lock":  func(s *rlock.Session, name string, keep rlock.MutexOption) mutex { return rlock.New(s, name, keep) },
		"write": func(s *rlock.Session, name string, keep rlock.MutexOption) mutex { return rwlock.New(s, name, keep) },
	} {
		rows = append(rows,
			row{java + "JavaWaitsForItsTime", func(t *testing.T, e *env) { javaWaitsForKept(t, e, java, of) }},
			row{java + "JavaGetsItInUse", func(t *testing.T, e *env) { javaGetsKeptInUse(t, e, java, of) }})
	}
	return rows
}

// late is how much later than it could a Java thread may have a lock, on a machine that does other things too. Leases
// are ten times as long.
const late = 3 * time.Second

// A Java thread waits for as long as the lock is kept, and no longer.
func javaWaitsForKept(t *testing.T, e *env, java string, of func(*rlock.Session, string, rlock.MutexOption) mutex) {
	const d = 2 * time.Second
	name, th := redistest.Name(t), e.java.thread(t)
	m := of(e.session(t, patient).Session, name, rlock.Keep(d))
	g := take(t, m.Lock)
	waiting := th.start(java, name, "lock")
	th.waits(waiting)
	began := time.Now()
	locktest.Must(t, g.h.Unlock())
	over := time.Now()
	a := locktest.Get(t, waiting, d+late, "Java has the lock when the time is over")
	locktest.Must(t, a.err)
	if took := a.ended.Sub(began); took < d-d/20 {
		t.Errorf("Java has the lock %v after Unlock, and it was to be kept for %v", took, d)
	} else if took = a.ended.Sub(over); took > d+late {
		t.Errorf("Java has waited %v for a lock that is kept for %v", took, d)
	}
	t.Logf("Java has waited %v for a lock that is kept for %v", a.ended.Sub(over), d)
	refuses(t, m.TryLock)
	th.do(java, name, "unlock")
	locktest.Must(t, take(t, m.Lock).h.Unlock())
}

// While the session goes on using the lock, it passes through Redis at least once in that time, so that a Java thread
// that waits has its turn; and again.
func javaGetsKeptInUse(t *testing.T, e *env, java string, of func(*rlock.Session, string, rlock.MutexOption) mutex) {
	const d = time.Second
	name, th := redistest.Name(t), e.java.thread(t)
	m := of(e.session(t, patient).Session, name, rlock.Keep(d))
	ctx, stop := context.WithCancel(locktest.Within(t, time.Minute))
	var cycles atomic.Int64
	failed := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			_, h, err := m.Lock(context.WithoutCancel(ctx))
			if err == nil {
				err = h.Unlock()
			}
			if err != nil {
				failed <- err
				return
			}
			cycles.Add(1)
		}
		failed <- nil
	}()
	for range 5 {
		before := cycles.Load() // a thread that comes back at once may be in before the session hears of its Unlock
		redistest.Eventually(t, wokenWithin, "the session to use the lock", func() bool { return cycles.Load() > before })
		began := time.Now()
		a := locktest.Get(t, th.start(java, name, "lock"), wokenWithin, "Java's turn")
		locktest.Must(t, a.err)
		t.Logf("Java has waited %v for a lock in use that is kept for %v", a.ended.Sub(began), d)
		th.do(java, name, "unlock")
	}
	stop()
	locktest.Must(t, locktest.Get(t, failed, answerTimeout, "the Go side to end"))
	n := cycles.Load()
	if n < 1000 {
		t.Errorf("Go has had the lock %d times only: it was not kept", n)
	}
	t.Logf("Go has had the lock %d times meanwhile", n)
}
