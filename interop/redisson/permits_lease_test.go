package redisson

import (
	"context"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

func permitsJavaLeaseEnds(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 2)
	j.do("permits", name, "set", "2")
	id := j.do("permits", name, "acquire", "1", ms(short))
	ctx, cancel := context.WithTimeout(t.Context(), wokenWithin) // the poll floor is later
	defer cancel()
	_, p, err := m.Acquire(ctx, 2) // by the clock
	locktest.Must(t, err)
	j.want("false", "permits", name, "release", id)
	wantCount(t, "Available", 0, m.Available)
	locktest.Must(t, p.Release())
	wantCount(t, "Available", 2, m.Available)
}

func permitsGoLeaseEnds(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 2)
	g := tryPermits(t, m, 2, rlock.Lease(short))
	ids := wokenJava(t, j.start("permits", name, "acquire", "2", ms(time.Minute))) // by the clock
	locktest.Ends(t, g.section, wokenWithin, rlock.ErrLost)
	locktest.Is(t, "Release", g.p.Release(), rlock.ErrLost)
	wantCount(t, "Available", 0, m.Available)
	j.want("true", "permits", name, "release", ids)
	wantCount(t, "Available", 2, m.Available)
}

// A permit that Java takes without a lease never expires, nor does Go think so.
func permitsJavaWithoutLease(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 2)
	j.do("permits", name, "set", "2")
	ids := j.do("permits", name, "acquire", "2", "-1")
	wantCount(t, "Available", 0, m.Available)
	waiter := s.acquires(t, name, m, 2)
	if n := s.attempts(name); n > 2 {
		t.Errorf("Go has looked %d times for what does not expire", n)
	}
	j.want("true", "permits", name, "release", ids)
	locktest.Must(t, wokenPermits(t, waiter).p.Release())
}

func permitsGoIsRenewed(t *testing.T, e *env) {
	name, j := redistest.Name(t), e.java.thread(t)
	s := e.session(t, rlock.Config{Lease: short})
	m := semaphore.New(s.Session, name, 2)
	g := tryPermits(t, m, 2)
	// Java sleeps until the first lease would be over, looks, and sleeps again.
	waiter := j.start("permits", name, "try", "1", ms(3*short), ms(time.Minute))
	if got := locktest.Get(t, waiter, answerTimeout, "Java gives up"); got.err != nil || got.value != "" {
		t.Fatalf("Java got %q, %v", got.value, got.err)
	}
	locktest.Must(t, context.Cause(g.section))
	locktest.Must(t, g.p.Release())
	j.do("permits", name, "acquire", "2", ms(time.Minute))
}

func permitsJavaProlongs(t *testing.T, e *env) {
	name, j := redistest.Name(t), e.java.thread(t)
	s := e.session(t, rlock.Config{PollFloor: 100 * time.Millisecond})
	m := semaphore.New(s.Session, name, 1)
	j.do("permits", name, "set", "1")
	id := j.do("permits", name, "acquire", "1", ms(short))
	j.want("true", "permits", name, "lease", id, ms(time.Hour))
	_, _, err := m.Acquire(t.Context(), 1, rlock.Wait(2*short))
	locktest.Is(t, "Acquire", err, rlock.ErrNotAcquired)
	j.want("true", "permits", name, "release", id)
}

// Java gives what Go has a new end, and reads it.
func permitsJavaExtendsGos(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 1)
	g := tryPermits(t, m, 1, rlock.Lease(time.Minute))
	id := g.p.IDs()[0]
	wantLeft(t, j.do("permits", name, "left", id), time.Minute)
	j.want("true", "permits", name, "lease", id, ms(time.Hour))
	wantLeft(t, j.do("permits", name, "left", id), time.Hour)
	locktest.Must(t, g.p.Release())
	j.want("false", "permits", name, "lease", id, ms(time.Hour))
}

// Go gives what Java has a new end.
func permitsGoExtendsJavas(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 1)
	j.do("permits", name, "set", "1")
	id := j.do("permits", name, "acquire", "1", ms(time.Minute))
	locktest.Must(t, m.ExtendByID(t.Context(), time.Hour, id))
	wantLeft(t, j.do("permits", name, "left", id), time.Hour)
	locktest.Must(t, m.ReleaseByID(t.Context(), id))
	locktest.Is(t, "ExtendByID", m.ExtendByID(t.Context(), time.Hour, id), rlock.ErrNotHeld)
}

// wantLeft checks what Java's getLeaseTime said, by clocks that are nearly the same.
func wantLeft(t testing.TB, said string, want time.Duration) {
	t.Helper()
	n, err := strconv.ParseInt(said, 10, 64)
	locktest.Must(t, err)
	if left := time.Duration(n) * time.Millisecond; left > want+time.Second || left < want-20*time.Second {
		t.Fatalf("Java says that it ends in %v, want %v", left, want)
	}
}
