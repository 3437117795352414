package redisson

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func leaseUntouched(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := k.of(s.Session, name)
	j.do(k.java, name, "lock", ms(time.Minute))
	lease := e.ttl(t, name)
	refuses(t, m.TryLock)
	waiter := s.queue(t, name, m.Lock, rlock.Lease(time.Hour))
	e.fades(t, name, lease)
	j.do(k.java, name, "unlock")
	g := woken(t, waiter)

	lease = e.ttl(t, name)
	j.want("false", k.java, name, "try", "0", ms(2*time.Hour))
	java := j.start(k.java, name, "try", ms(patience), ms(2*time.Hour))
	j.waits(java)
	e.fades(t, name, lease)
	if lease < 59*time.Minute {
		t.Fatalf("the lease is %v, not an hour", lease)
	}
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, java)
	j.do(k.java, name, "unlock")
}

func javaIsRenewed(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.brisk.thread(t), e.session(t, rlock.Config{PollFloor: 100 * time.Millisecond})
	m := k.of(s.Session, name)
	j.do(k.java, name, "lock")
	waiter := s.queue(t, name, m.Lock)
	e.renewals(t, name, 4)
	stillWaits(t, waiter, "Go")
	j.do(k.java, name, "unlock")
	woken(t, waiter)
}

func goIsRenewed(t *testing.T, e *env, k kind) {
	name, j := redistest.Name(t), e.java.thread(t)
	s := e.session(t, rlock.Config{Lease: short})
	m := k.of(s.Session, name)
	g := take(t, m.Lock)
	waiter := j.start(k.java, name, "lock")
	j.waits(waiter)
	e.renewals(t, name, 4)
	stillWaits(t, waiter, "Java")
	locktest.Must(t, context.Cause(g.section))
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, waiter)
	j.do(k.java, name, "unlock")
}

func javaLeaseEnds(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := k.of(s.Session, name)
	j.do(k.java, name, "lock", ms(short))
	g := woken(t, s.begin(t, m.Lock)) // by the clock
	j.throws("IllegalMonitorStateException", k.java, name, "unlock")
	e.wantHolds(t, name, s.ID(), k.field, "1")
	locktest.Must(t, context.Cause(g.section))
	locktest.Must(t, g.h.Unlock())
}

func goLeaseEnds(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := k.of(s.Session, name)
	stalls := locktest.WatchStalls(t)
	g := take(t, m.Lock, rlock.Lease(short))
	wokenJava(t, j.start(k.java, name, "lock")) // by the clock
	if err := context.Cause(g.section); err == nil && stalls.Longest() < short/100 {
		t.Fatal("Java is in, and Go's section has not ended")
	}
	locktest.Is(t, "Unlock", g.h.Unlock(), rlock.ErrLost)
	j.want("true", k.java, name, "mine")
	j.do(k.java, name, "unlock")
}

func goForces(t *testing.T, e *env, k kind) {
	name, j, j2 := redistest.Name(t), e.java.thread(t), e.other.thread(t)
	s, operator := e.session(t, patient), e.session(t, patient)
	m := k.of(s.Session, name)
	force := func(want bool) {
		t.Helper()
		ended, err := k.of(operator.Session, name).ForceUnlock(t.Context())
		locktest.Must(t, err)
		if ended != want {
			t.Fatalf("ForceUnlock is %v, want %v", ended, want)
		}
	}
	force(false)
	j.do(k.java, name, "lock")
	waiter := s.queue(t, name, m.Lock)
	force(true)
	g := woken(t, waiter)
	j.throws("IllegalMonitorStateException", k.java, name, "unlock")
	locktest.Must(t, context.Cause(g.section))
	locktest.Must(t, g.h.Unlock())

	j.do(k.java, name, "lock")
	java := j2.start(k.java, name, "lock")
	j2.waits(java)
	force(true)
	wokenJava(t, java)
	j.want("0", k.java, name, "holds")
	j2.do(k.java, name, "unlock")
}

func javaForces(t *testing.T, e *env, k kind) {
	name, j := redistest.Name(t), e.java.thread(t)
	holder, s := e.session(t, rlock.Config{Lease: short}), e.session(t, patient)
	m := k.of(s.Session, name)
	j.want("false", k.java, name, "force")
	g := take(t, k.of(holder.Session, name).Lock)
	waiter := s.queue(t, name, m.Lock)
	j.want("true", k.java, name, "force")
	next := woken(t, waiter)
	// Redisson tells the waiters, not the holder, which learns at its next renewal.
	locktest.Ends(t, g.section, short+5*time.Second, rlock.ErrLost)
	locktest.Is(t, "Unlock", g.h.Unlock(), rlock.ErrLost)
	locktest.Must(t, context.Cause(next.section))
	locktest.Must(t, next.h.Unlock())
}

func javaKilled(t *testing.T, e *env, k kind) {
	name, s := redistest.Name(t), e.session(t, patient)
	m := k.of(s.Session, name)
	victim := startPeer(t, e, "watchdog="+ms(short))
	victim.thread(t).do(k.java, name, "lock")
	waiter := s.queue(t, name, m.Lock)
	e.renewals(t, name, 2)
	stillWaits(t, waiter, "Go")
	victim.kill()
	g := woken(t, waiter) // by the clock: nobody sends a message
	locktest.Must(t, g.h.Unlock())
}

func goKilled(t *testing.T, e *env, k kind) {
	name, j := redistest.Name(t), e.java.thread(t)
	kill := holdInChild(t, e, k.java, name)
	waiter := j.start(k.java, name, "lock")
	j.waits(waiter)
	e.renewals(t, name, 2)
	stillWaits(t, waiter, "Java")
	kill()
	wokenJava(t, waiter) // by the clock
	j.do(k.java, name, "unlock")
}
