package redisson

import (
	"context"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A Java reader that leaves looks for the timeout keys of all others, and takes the lock
// away when it finds none.
func javaReadersLeaveGoReadersStay(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	m := rwlock.New(s.Session, name)
	outer := take(t, m.RLock)
	var holds []*rlock.Hold
	for range 3 {
		_, h, err := m.RLock(outer.section)
		locktest.Must(t, err)
		holds = append(holds, h)
	}
	j, w := e.java.thread(t), e.other.thread(t)
	visit := func() {
		t.Helper()
		j.do("read", name, "lock")
		j.do("read", name, "lock")
		j.do("read", name, "unlock")
		j.do("read", name, "unlock")
		w.want("false", "write", name, "try")
		if ttl := e.ttl(t, name); ttl < watchdog/2 {
			t.Fatalf("the lock's lease is %v after a Java reader has left", ttl)
		}
		locktest.Must(t, context.Cause(outer.section))
	}
	visit()
	// The outermost first: which of its timeout keys stay does not follow the holds.
	for _, h := range []*rlock.Hold{outer.h, holds[1], holds[0]} {
		locktest.Must(t, h.Unlock())
		visit()
	}
	waiter := w.start("write", name, "lock")
	w.waits(waiter)
	locktest.Must(t, holds[2].Unlock())
	wokenJava(t, waiter)
	w.do("write", name, "unlock")
}

func goReadersLeaveJavaReadersStay(t *testing.T, e *env) {
	name, s, s2 := redistest.Name(t), e.session(t, patient), e.session(t, patient)
	m := rwlock.New(s.Session, name)
	j, w := e.java.thread(t), e.other.thread(t)
	for range 3 {
		j.do("read", name, "lock")
	}
	for range 3 {
		g := take(t, m.RLock)
		_, inner, err := m.RLock(g.section)
		locktest.Must(t, err)
		locktest.Must(t, g.h.Unlock())
		locktest.Must(t, inner.Unlock())
		w.want("false", "write", name, "try")
		refuses(t, rwlock.New(s2.Session, name).TryLock)
		if ttl := e.ttl(t, name); ttl < watchdog/2 {
			t.Fatalf("the lock's lease is %v after a Go reader has left", ttl)
		}
		j.do("read", name, "unlock")
	}
	j.throws("IllegalMonitorStateException", "read", name, "unlock")
	take(t, rwlock.New(s2.Session, name).TryLock)
}

// An owner that two sessions share has one field and one row of timeout keys.
func sharedOwnerStays(t *testing.T, e *env) {
	name, s, s2 := redistest.Name(t), e.session(t, patient), e.session(t, patient)
	j, w := e.java.thread(t), e.other.thread(t)
	lock := func(s *side) *rlock.Hold {
		t.Helper()
		_, h, err := rwlock.New(s.Session, name).RLock(rlock.WithOwner(t.Context(), "request:"+name))
		locktest.Must(t, err)
		return h
	}
	first, second := lock(s), lock(s2)
	third := lock(s)
	for _, h := range []*rlock.Hold{second, first} {
		locktest.Must(t, h.Unlock())
		j.do("read", name, "lock")
		j.do("read", name, "unlock")
		w.want("false", "write", name, "try")
	}
	locktest.Must(t, third.Unlock())
	w.want("true", "write", name, "try")
}
