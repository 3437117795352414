package redisson

import (
	"strconv"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

var (
	tokenRows = []row{{"GrowAcrossBoth", tokensGrow}, {"GrowWithoutAsking", tokensGrowWithoutAsking}}
	// fairRows: the queues of the two sides are not the same, the lock is.
	fairRows = []row{
		{"KeepsOutJava", fairKeepsOutJava},
		{"IsKeptOutByJava", fairIsKeptOutByJava},
		{"WakesJavaLock", fairWakesJavaLock},
		{"JavaFairLockGetsIn", fairJavaFairLockGetsIn},
		{"GetsInAfterJava", fairGetsInAfterJava},
		{"SpinLockExcludes", spinLockExcludes},
		{"NonReentrantLock", nonReentrantLock},
	}
)

func tokensGrow(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := rlock.New(s.Session, name, rlock.Fenced())
	last := int64(0)
	grows := func(who string, token int64) {
		t.Helper()
		if token <= last {
			t.Fatalf("%s has token %d after %d", who, token, last)
		}
		last = token
	}
	for range 3 {
		grows("Java", number(t, j.do("fenced", name, "token")))
		waiter := s.queue(t, name, m.Lock)
		// Re-entry draws a token too, in Redisson.
		grows("Java's re-entry", number(t, j.do("fenced", name, "token")))
		j.do("fenced", name, "unlock")
		j.do("fenced", name, "unlock")
		g := woken(t, waiter)
		grows("Go", g.h.Token())
		java := j.start("fenced", name, "token")
		redistest.Eventually(t, answerTimeout, "Java subscribes", func() bool { // it does not park for this one
			return e.subscribers(t, "redisson_lock__channel:{"+e.key(name)+"}") == 1
		})
		locktest.Must(t, g.h.Unlock())
		grows("Java", number(t, wokenJava(t, java)))
		j.do("fenced", name, "unlock")
	}
}

// lock() draws a token as well, which Go's next one must exceed, and getToken tells of Go's.
func tokensGrowWithoutAsking(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := rlock.New(s.Session, name, rlock.Fenced())
	j.do("fenced", name, "lock")
	drawn := number(t, j.do("fenced", name, "lasttoken"))
	j.do("fenced", name, "unlock")
	g := take(t, m.Lock)
	if g.h.Token() <= drawn {
		t.Fatalf("Go has token %d after %d", g.h.Token(), drawn)
	}
	j.want(strconv.FormatInt(g.h.Token(), 10), "fenced", name, "lasttoken")
	locktest.Must(t, g.h.Unlock())
}

func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	locktest.Must(t, err)
	return n
}

func fairKeepsOutJava(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	g := take(t, fairlock.New(s.Session, name).Lock)
	j := e.java.thread(t)
	j.want("false", "lock", name, "try")
	j.want("false", "fair", name, "try")
	j.want("false", "fair", name, "try", "50", "-1") // queues, and leaves again
	j.want("true", "fair", name, "locked")
	locktest.Must(t, g.h.Unlock())
	j.want("true", "fair", name, "try")
}

func fairIsKeptOutByJava(t *testing.T, e *env) {
	for _, kind := range []string{"lock", "fair"} {
		name, s := redistest.Name(t), e.session(t, patient)
		m := fairlock.New(s.Session, name)
		j := e.java.thread(t)
		j.do(kind, name, "lock")
		refuses(t, m.TryLock)
		j.do(kind, name, "lock")
		j.do(kind, name, "unlock")
		refuses(t, m.TryLock)
		j.do(kind, name, "unlock")
		take(t, m.TryLock)
	}
}

// Where nobody waits in the queue, a fair lock tells those who wait for a plain one.
func fairWakesJavaLock(t *testing.T, e *env) {
	name, s, j := redistest.Name(t), e.session(t, patient), e.java.thread(t)
	g := take(t, fairlock.New(s.Session, name).Lock)
	waiter := j.start("lock", name, "lock")
	j.waits(waiter)
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, waiter)
	j.do("lock", name, "unlock")
}

// Redisson's fair lock waits for a message to itself, which Go does not send: it looks when
// the lease that it has seen is over.
func fairJavaFairLockGetsIn(t *testing.T, e *env) {
	name, s, j := redistest.Name(t), e.session(t, patient), e.java.thread(t)
	g := take(t, fairlock.New(s.Session, name).Lock, rlock.Lease(2*short))
	waiter := j.start("fair", name, "lock")
	j.waits(waiter)
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, waiter)
	j.do("fair", name, "unlock")
}

// A fair waiter looks at each of its heartbeats, whatever side has held the lock.
func fairGetsInAfterJava(t *testing.T, e *env) {
	for _, kind := range []string{"lock", "fair"} {
		name, j := redistest.Name(t), e.java.thread(t)
		s := e.session(t, rlock.Config{PollFloor: patience, QueueLease: short})
		m := fairlock.New(s.Session, name)
		j.do(kind, name, "lock")
		waiting := make(chan got, 1)
		ctx := locktest.Within(t, time.Minute)
		go func() {
			section, h, err := m.Lock(ctx)
			waiting <- got{section, h, err}
		}()
		redistest.Eventually(t, answerTimeout, "Go waits", func() bool {
			n, err := m.Waiters(ctx)
			return err == nil && n == 1
		})
		j.do(kind, name, "unlock")
		locktest.Must(t, woken(t, waiting).h.Unlock())
	}
}

// Redisson's spin lock excludes, but tells nobody.
func spinLockExcludes(t *testing.T, e *env) {
	name, j := redistest.Name(t), e.java.thread(t)
	s := e.session(t, rlock.Config{PollFloor: 200 * time.Millisecond})
	m := rlock.New(s.Session, name)
	j.do("spin", name, "lock")
	refuses(t, m.TryLock)
	waiter := s.queue(t, name, m.Lock)
	j.do("spin", name, "unlock")
	g := woken(t, waiter) // by its own look
	j.want("false", "spin", name, "try")
	spinning := j.start("spin", name, "lock")
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, spinning) // by its own look
	refuses(t, m.TryLock)
	j.do("spin", name, "unlock")
}

// Redisson's non-reentrant lock differs from the plain one for its own threads only.
func nonReentrantLock(t *testing.T, e *env) {
	name, s, j := redistest.Name(t), e.session(t, patient), e.java.thread(t)
	m := rlock.New(s.Session, name)
	j.do("nonreentrant", name, "lock")
	j.throws("IllegalMonitorStateException", "nonreentrant", name, "lock")
	waiter := s.queue(t, name, m.Lock)
	j.do("nonreentrant", name, "unlock")
	g := woken(t, waiter)
	j.want("false", "nonreentrant", name, "try")
	java := j.start("nonreentrant", name, "lock")
	j.waits(java)
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, java)
	refuses(t, m.TryLock)
	j.do("nonreentrant", name, "unlock")
}
