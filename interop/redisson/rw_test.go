package redisson

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// rwRows are what readers and writers of both sides can do to each other. The write side
// alone is among the exclusive locks.
var rwRows = []row{
	{"GoWriterWaitsForReaders", goWriterWaitsForReaders},
	{"JavaWriterWaitsForReaders", javaWriterWaitsForReaders},
	{"GoWriterLetsAllReadersIn", goWriterLetsAllReadersIn},
	{"JavaWriterLetsAllReadersIn", javaWriterLetsAllReadersIn},
	{"JavaReadersLeaveGoReadersStay", javaReadersLeaveGoReadersStay},
	{"GoReadersLeaveJavaReadersStay", goReadersLeaveJavaReadersStay},
	{"SharedOwnerStays", sharedOwnerStays},
	{"ReadersAreRenewed", readersAreRenewed},
	{"JavaReadsSeveralLocks", javaReadsSeveralLocks},
	{"LeasesDiffer", leasesDiffer},
	{"LeaseOfADeadJavaReader", leaseOfADeadJavaReader},
	{"GoDowngrades", goDowngrades},
	{"JavaDowngrades", javaDowngrades},
	{"GoForcesReaders", goForcesReaders},
	{"JavaForcesReaders", javaForcesReaders},
	{"JavaReaderKilled", javaReaderKilled},
	{"GoReaderKilled", goReaderKilled},
	{"WaitingWriterAndNewReaders", waitingWriterAndNewReaders},
	{"JavaReaderIsOver", javaReaderIsOver},
	{"GoReaderIsOver", goReaderIsOver},
	{"ManyGoReaders", manyGoReaders},
}

// readers enters one reader of each side.
func readers(t *testing.T, e *env, name string) (*thread, got) {
	t.Helper()
	j, s := e.java.thread(t), e.session(t, patient)
	g := take(t, rwlock.New(s.Session, name).RLock)
	j.do("read", name, "lock")
	return j, g
}

// leave ends one reader of each side, and calls meanwhile in between.
func leave(t *testing.T, name string, j *thread, g got, javaLast bool, meanwhile func()) {
	t.Helper()
	if !javaLast {
		j.do("read", name, "unlock")
		meanwhile()
	}
	locktest.Must(t, g.h.Unlock())
	if javaLast {
		meanwhile()
		j.do("read", name, "unlock")
	}
}

func goWriterWaitsForReaders(t *testing.T, e *env) {
	for _, javaLast := range []bool{true, false} {
		name := redistest.Name(t)
		j, g := readers(t, e, name)
		s := e.session(t, patient)
		m := rwlock.New(s.Session, name)
		refuses(t, m.TryLock)
		waiter := s.queue(t, name, m.Lock)
		leave(t, name, j, g, javaLast, func() {
			refuses(t, m.TryLock)
			stillWaits(t, waiter, "Go's writer")
		})
		w := woken(t, waiter)
		j.want("false", "read", name, "try")
		locktest.Must(t, w.h.Unlock())
	}
}

func javaWriterWaitsForReaders(t *testing.T, e *env) {
	for _, javaLast := range []bool{true, false} {
		name := redistest.Name(t)
		j, g := readers(t, e, name)
		w := e.other.thread(t)
		w.want("false", "write", name, "try")
		waiter := w.start("write", name, "lock")
		w.waits(waiter)
		leave(t, name, j, g, javaLast, func() {
			if !w.parked() {
				t.Fatal("the Java writer was woken while a reader stays")
			}
		})
		wokenJava(t, waiter)
		refuses(t, rwlock.New(e.session(t, patient).Session, name).TryRLock)
		w.do("write", name, "unlock")
	}
}

// waitingReaders has readers of both sides wait: two sessions, and four threads of two
// Java processes.
func waitingReaders(t *testing.T, e *env, name string) (wokenAll func()) {
	t.Helper()
	var ours []<-chan got
	for range 2 {
		s := e.session(t, patient)
		ours = append(ours, s.queue(t, name, rwlock.New(s.Session, name).RLock))
	}
	var theirs []<-chan answer
	var threads []*thread
	for i := range 4 {
		j := []*peer{e.java, e.other}[i%2].thread(t)
		threads = append(threads, j)
		theirs = append(theirs, j.start("read", name, "lock"))
		j.waits(theirs[i])
	}
	return func() {
		t.Helper()
		var in []got
		for _, c := range ours {
			in = append(in, woken(t, c))
		}
		for _, c := range theirs {
			wokenJava(t, c)
		}
		for _, j := range threads {
			j.do("read", name, "unlock")
		}
		for _, g := range in {
			locktest.Must(t, context.Cause(g.section))
			locktest.Must(t, g.h.Unlock())
		}
	}
}

func goWriterLetsAllReadersIn(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	w := take(t, rwlock.New(s.Session, name).Lock)
	wokenAll := waitingReaders(t, e, name)
	locktest.Must(t, w.h.Unlock())
	wokenAll()
}

func javaWriterLetsAllReadersIn(t *testing.T, e *env) {
	name, w := redistest.Name(t), e.java.thread(t)
	w.do("write", name, "lock")
	wokenAll := waitingReaders(t, e, name)
	w.do("write", name, "unlock")
	wokenAll()
}

func goDowngrades(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	m := rwlock.New(s.Session, name)
	w := take(t, m.Lock)
	_, r, err := m.RLock(w.section)
	locktest.Must(t, err)
	wokenAll := waitingReaders(t, e, name)
	locktest.Must(t, w.h.Unlock())
	wokenAll()
	j := e.java.thread(t)
	j.want("false", "write", name, "try")
	waiter := j.start("write", name, "lock")
	j.waits(waiter)
	locktest.Must(t, r.Unlock())
	wokenJava(t, waiter)
	j.do("write", name, "unlock")
}

// Redisson says nothing when it downgrades; who waits looks after the poll floor.
func javaDowngrades(t *testing.T, e *env) {
	name, j := redistest.Name(t), e.java.thread(t)
	s := e.session(t, rlock.Config{PollFloor: 200 * time.Millisecond})
	m := rwlock.New(s.Session, name)
	j.do("write", name, "lock")
	j.do("read", name, "lock")
	reader := s.queue(t, name, m.RLock)
	j.do("write", name, "unlock")
	g := woken(t, reader)
	refuses(t, m.TryLock)
	writer := s.queue(t, name, m.Lock)
	locktest.Must(t, g.h.Unlock())
	stillWaits(t, writer, "Go's writer")
	j.do("read", name, "unlock")
	locktest.Must(t, woken(t, writer).h.Unlock())
}

func goForcesReaders(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	j, g := readers(t, e, name)
	m := rwlock.New(s.Session, name)
	waiter := s.queue(t, name, m.Lock)
	ended, err := rwlock.New(e.session(t, patient).Session, name).ForceUnlock(t.Context())
	locktest.Must(t, err)
	if !ended {
		t.Fatal("ForceUnlock has found nobody")
	}
	w := woken(t, waiter)
	locktest.Ends(t, g.section, wokenWithin, rlock.ErrLost)
	locktest.Is(t, "Unlock", g.h.Unlock(), rlock.ErrLost)
	j.throws("IllegalMonitorStateException", "read", name, "unlock")
	locktest.Must(t, context.Cause(w.section))
	locktest.Must(t, w.h.Unlock())
}

func javaForcesReaders(t *testing.T, e *env) {
	name, j := redistest.Name(t), e.java.thread(t)
	holder, s := e.session(t, rlock.Config{Lease: short}), e.session(t, patient)
	g := take(t, rwlock.New(holder.Session, name).RLock)
	waiter := s.queue(t, name, rwlock.New(s.Session, name).Lock)
	j.want("false", "write", name, "force")
	j.want("true", "read", name, "force")
	w := woken(t, waiter)
	locktest.Ends(t, g.section, short+5*time.Second, rlock.ErrLost)
	locktest.Is(t, "Unlock", g.h.Unlock(), rlock.ErrLost)
	locktest.Must(t, context.Cause(w.section))
	locktest.Must(t, w.h.Unlock())
}

// Java readers know nothing of waiting writers and pass them; Go readers wait behind.
func waitingWriterAndNewReaders(t *testing.T, e *env) {
	name, s, s2 := redistest.Name(t), e.session(t, patient), e.session(t, patient)
	j, g := readers(t, e, name)
	m := rwlock.New(s.Session, name)
	writer := s.queue(t, name, m.Lock)
	late := e.other.thread(t)
	late.want("true", "read", name, "try")
	refuses(t, rwlock.New(s2.Session, name).TryRLock)
	j.do("read", name, "unlock")
	locktest.Must(t, g.h.Unlock())
	stillWaits(t, writer, "Go's writer")
	late.do("read", name, "unlock")
	w := woken(t, writer)
	wokenAll := waitingReaders(t, e, name)
	locktest.Must(t, w.h.Unlock())
	wokenAll()
}
