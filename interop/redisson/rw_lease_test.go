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

func readersAreRenewed(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, rlock.Config{Lease: short})
	g := take(t, rwlock.New(s.Session, name).RLock)
	j, j2, w := e.brisk.thread(t), e.brisk.thread(t), e.java.thread(t)
	j.do("read", name, "lock")
	j2.do("read", name, "lock")
	waiter := w.start("write", name, "lock")
	w.waits(waiter)
	e.renewals(t, name, 4)
	// Several leases later: whose timeout keys had not been renewed would be forgotten now.
	j.do("read", name, "unlock")
	e.renewals(t, name, 4)
	j2.do("read", name, "unlock")
	e.renewals(t, name, 4) // by Go alone
	stillWaits(t, waiter, "Java's writer")
	locktest.Must(t, context.Cause(g.section))
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, waiter)
	w.do("write", name, "unlock")
}

// One renewal of a Java process is for all of its readers, of all locks.
func javaReadsSeveralLocks(t *testing.T, e *env) {
	s, j := e.session(t, patient), e.brisk.thread(t)
	names := []string{redistest.Name(t), redistest.Name(t)}
	var waiters []<-chan got
	for _, name := range names {
		j.do("read", name, "lock")
		j.do("read", name, "lock")
		waiters = append(waiters, s.queue(t, name, rwlock.New(s.Session, name).Lock))
	}
	for i, name := range names {
		e.renewals(t, name, 5) // longer than a lease
		stillWaits(t, waiters[i], "Go's writer")
	}
	for i, name := range names {
		j.do("read", name, "unlock")
		stillWaits(t, waiters[i], "Go's writer")
		j.do("read", name, "unlock")
		locktest.Must(t, woken(t, waiters[i]).h.Unlock())
	}
}

// Redisson's renewal sets the lease of the lock to its own, its unlock to the longest.
func leasesDiffer(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	g := take(t, rwlock.New(s.Session, name).RLock, rlock.Lease(time.Hour))
	j := e.brisk.thread(t)
	j.do("read", name, "lock")
	redistest.Eventually(t, answerTimeout, "Redisson's renewal", func() bool { return e.ttl(t, name) <= short })
	j.do("read", name, "unlock")
	if ttl := e.ttl(t, name); ttl < 50*time.Minute {
		t.Fatalf("the lock's lease is %v", ttl)
	}
	locktest.Must(t, g.h.Unlock())
	take(t, rwlock.New(s.Session, name).TryLock)
}

// What Redisson's renewal leaves of the lease is all that is left of it when that process dies.
func leaseOfADeadJavaReader(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, rlock.Config{RedissonWatchdog: short})
	w := e.session(t, patient)
	victim := startPeer(t, e, "watchdog="+ms(short))
	victim.thread(t).do("read", name, "lock")
	g := take(t, rwlock.New(s.Session, name).RLock, rlock.Lease(time.Hour))
	waiter := w.queue(t, name, rwlock.New(w.Session, name).Lock)
	redistest.Eventually(t, answerTimeout, "Redisson's renewal", func() bool { return e.ttl(t, name) <= short })
	victim.kill()
	redistest.Eventually(t, answerTimeout, "Go has the lease that it asked for", func() bool {
		ttl := e.ttl(t, name)
		if ttl < 0 {
			t.Fatal("the lock is gone")
		}
		return ttl > 50*time.Minute
	})
	stillWaits(t, waiter, "Go's writer")
	locktest.Must(t, context.Cause(g.section))
	locktest.Must(t, g.h.Unlock())
	locktest.Must(t, woken(t, waiter).h.Unlock())
}

// A reader that dies keeps a writer out for its lease, whoever else reads.
func javaReaderKilled(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, rlock.Config{Lease: short})
	m := rwlock.New(s.Session, name)
	victim := startPeer(t, e, "watchdog="+ms(short))
	victim.thread(t).do("read", name, "lock")
	g := take(t, m.RLock)
	waiter := s.queue(t, name, m.Lock)
	victim.kill()
	// Longer than the dead one's lease: the other reader stays.
	e.renewals(t, name, 5)
	stillWaits(t, waiter, "Go's writer")
	locktest.Must(t, context.Cause(g.section))
	locktest.Must(t, g.h.Unlock())
	locktest.Must(t, woken(t, waiter).h.Unlock())
}

func goReaderKilled(t *testing.T, e *env) {
	name := redistest.Name(t)
	kill := holdInChild(t, e, "read", name)
	j, w := e.brisk.thread(t), e.java.thread(t)
	j.do("read", name, "lock")
	waiter := w.start("write", name, "lock")
	w.waits(waiter)
	kill()
	e.renewals(t, name, 5)
	stillWaits(t, waiter, "Java's writer")
	j.do("read", name, "unlock")
	wokenJava(t, waiter)
	w.do("write", name, "unlock")
}

// A reader whose lease is over, and who has not left, is nobody: who leaves last lets the
// writers in.
func javaReaderIsOver(t *testing.T, e *env) {
	for _, javaWrites := range []bool{false, true} {
		name, j := redistest.Name(t), e.java.thread(t)
		g := take(t, rwlock.New(e.session(t, patient).Session, name).RLock)
		j.do("read", name, "lock", ms(short))
		wokenWriter := waitingWriter(t, e, name, javaWrites)
		e.gone(t, name, j.do("read", name, "owner"))
		locktest.Must(t, g.h.Unlock())
		wokenWriter()
	}
}

func goReaderIsOver(t *testing.T, e *env) {
	for _, javaWrites := range []bool{false, true} {
		name, j := redistest.Name(t), e.java.thread(t)
		j.do("read", name, "lock")
		g := take(t, rwlock.New(e.session(t, patient).Session, name).RLock, rlock.Lease(short))
		wokenWriter := waitingWriter(t, e, name, javaWrites)
		locktest.Ends(t, g.section, wokenWithin, rlock.ErrLost)
		e.gone(t, name, g.h.Owner())
		j.do("read", name, "unlock")
		wokenWriter()
		locktest.Is(t, "Unlock", g.h.Unlock(), rlock.ErrLost)
	}
}

// waitingWriter has a writer wait, and returns what checks that it is woken.
func waitingWriter(t *testing.T, e *env, name string, java bool) (wokenWriter func()) {
	t.Helper()
	if java {
		w := e.other.thread(t)
		waiter := w.start("write", name, "lock")
		w.waits(waiter)
		return func() {
			t.Helper()
			wokenJava(t, waiter)
			w.do("write", name, "unlock")
		}
	}
	s := e.session(t, patient)
	waiter := s.queue(t, name, rwlock.New(s.Session, name).Lock)
	return func() {
		t.Helper()
		locktest.Must(t, woken(t, waiter).h.Unlock())
	}
}

// Many readers of one session share a hold in Redis. To Java they are one reader, which
// stays for as long as any of them does.
func manyGoReaders(t *testing.T, e *env) {
	for _, javaWrites := range []bool{false, true} {
		name, s, j := redistest.Name(t), e.session(t, rlock.Config{Lease: short}), e.brisk.thread(t)
		m := rwlock.New(s.Session, name)
		var all []got
		for range 30 {
			all = append(all, take(t, m.RLock))
		}
		wokenWriter := waitingWriter(t, e, name, javaWrites)
		for i, g := range all {
			if i%10 == 0 {
				j.do("read", name, "lock")
				e.renewals(t, name, 4) // about a lease, or longer
				j.do("read", name, "unlock")
				e.java.thread(t).want("false", "write", name, "try")
			}
			locktest.Must(t, context.Cause(g.section))
			locktest.Must(t, g.h.Unlock())
		}
		wokenWriter()
	}
}

// gone returns when an owner has no timeout key of the lock any more.
func (e *env) gone(t testing.TB, name, owner string) {
	t.Helper()
	key := "{" + e.key(name) + "}:" + owner + ":rwlock_timeout:1"
	redistest.Eventually(t, answerTimeout, "the reader's timeout key ends", func() bool {
		n, err := e.admin.Do(t.Context(), e.admin.B().Exists().Key(key).Build()).AsInt64()
		return err == nil && n == 0
	})
}
