package redisson

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A mutex is what all exclusive locks of this library have in common.
type mutex interface {
	Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	TryLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	ForceUnlock(context.Context) (bool, error)
}

// A kind is an exclusive lock in both languages.
type kind struct {
	java string // as peer/ calls it
	of   func(*rlock.Session, string) mutex
	// field is what an owner is called in the hash, less the owner.
	field string
}

var exclusives = []kind{
	{"lock", func(s *rlock.Session, name string) mutex { return rlock.New(s, name) }, ""},
	{"fenced", func(s *rlock.Session, name string) mutex { return rlock.New(s, name, rlock.Fenced()) }, ""},
	{"write", func(s *rlock.Session, name string) mutex { return rwlock.New(s, name) }, ":write"},
}

// exclusiveRows are what two processes can do to each other at a lock that one holds at a
// time.
func exclusiveRows(k kind) (rows []row) {
	for _, r := range []struct {
		name string
		run  func(*testing.T, *env, kind)
	}{
		{"JavaHoldsGoWaits", javaHoldsGoWaits},
		{"GoHoldsJavaWaits", goHoldsJavaWaits},
		{"JavaReenters", javaReenters},
		{"GoReenters", goReenters},
		{"GoJoinsJava", goJoinsJava},
		{"JavaUnlocksShared", javaUnlocksShared},
		{"GoHandsOver", goHandsOver},
		{"LeaseUntouched", leaseUntouched},
		{"JavaIsRenewed", javaIsRenewed},
		{"GoIsRenewed", goIsRenewed},
		{"JavaLeaseEnds", javaLeaseEnds},
		{"GoLeaseEnds", goLeaseEnds},
		{"GoForces", goForces},
		{"JavaForces", javaForces},
		{"JavaKilled", javaKilled},
		{"GoKilled", goKilled},
	} {
		rows = append(rows, row{r.name, func(t *testing.T, e *env) { r.run(t, e, k) }})
	}
	return rows
}

func javaHoldsGoWaits(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := k.of(s.Session, name)
	j.do(k.java, name, "lock")
	refuses(t, m.TryLock)
	waiter := s.queue(t, name, m.Lock)
	j.do(k.java, name, "unlock")
	g := woken(t, waiter)
	j.want("false", k.java, name, "try")
	j.want("true", k.java, name, "locked")
	j.want("0", k.java, name, "holds")
	j.throws("IllegalMonitorStateException", k.java, name, "unlock")
	locktest.Must(t, g.h.Unlock())
	j.want("true", k.java, name, "try")
	refuses(t, m.TryLock)
	j.do(k.java, name, "unlock")
	take(t, m.TryLock)
}

func goHoldsJavaWaits(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := k.of(s.Session, name)
	g := take(t, m.Lock)
	j.want("false", k.java, name, "try")
	waiter := j.start(k.java, name, "lock")
	j.waits(waiter)
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, waiter)
	refuses(t, m.TryLock)
	locktest.Is(t, "a second Unlock", g.h.Unlock(), rlock.ErrNotHeld)
	j.want("1", k.java, name, "holds")
	j.do(k.java, name, "unlock")

	// The same with a bounded wait, which Java measures by itself.
	g = take(t, m.TryLock)
	waiter = j.start(k.java, name, "try", ms(patience), "-1")
	j.waits(waiter)
	locktest.Must(t, g.h.Unlock())
	if got := wokenJava(t, waiter); got != "true" {
		t.Fatalf("tryLock is %s", got)
	}
	j.do(k.java, name, "unlock")
}

func javaReenters(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := k.of(s.Session, name)
	j.do(k.java, name, "lock")
	j.do(k.java, name, "lock")
	e.wantHolds(t, name, e.java.id, k.field, "2")
	waiter := s.queue(t, name, m.Lock)
	j.do(k.java, name, "unlock")
	j.want("1", k.java, name, "holds")
	refuses(t, m.TryLock)
	stillWaits(t, waiter, "Go")
	j.do(k.java, name, "unlock")
	locktest.Must(t, woken(t, waiter).h.Unlock())
}

func goReenters(t *testing.T, e *env, k kind) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := k.of(s.Session, name)
	outer := take(t, m.Lock)
	_, inner, err := m.Lock(outer.section)
	locktest.Must(t, err)
	_, third, err := m.Lock(outer.section)
	locktest.Must(t, err)
	e.wantHolds(t, name, s.ID(), k.field, "3")
	waiter := j.start(k.java, name, "lock")
	j.waits(waiter)
	for _, h := range []*rlock.Hold{outer.h, third} { // in any order
		locktest.Must(t, h.Unlock())
		if !j.parked() {
			t.Fatal("Java was woken by the end of an inner hold")
		}
	}
	e.wantHolds(t, name, s.ID(), k.field, "1")
	locktest.Must(t, inner.Unlock())
	wokenJava(t, waiter)
	j.do(k.java, name, "unlock")
}

// A Go service that is told the owner of its Java caller is in with it: the lock is free
// when both have let go, in any order.
func goJoinsJava(t *testing.T, e *env, k kind) {
	for _, javaFirst := range []bool{true, false} {
		name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
		m := k.of(e.session(t, patient).Session, name)
		j.do(k.java, name, "lock")
		waiter := s.queue(t, name, k.of(s.Session, name).Lock)
		section, h, err := m.TryLock(rlock.WithOwner(t.Context(), j.do(k.java, name, "owner")))
		locktest.Must(t, err)
		j.want("2", k.java, name, "holds")
		if javaFirst {
			j.do(k.java, name, "unlock")
			locktest.Must(t, context.Cause(section))
		} else {
			locktest.Must(t, h.Unlock())
			j.want("1", k.java, name, "holds")
		}
		e.wantHolds(t, name, e.java.id, k.field, "1")
		stillWaits(t, waiter, "Go")
		if javaFirst {
			locktest.Must(t, h.Unlock())
		} else {
			j.do(k.java, name, "unlock")
		}
		locktest.Must(t, woken(t, waiter).h.Unlock())
	}
}

// When Java unlocks what Go goes on holding as the same owner, Redisson sets the lease to its own:
// much less than Go has asked for.
func javaUnlocksShared(t *testing.T, e *env, k kind) {
	for _, opts := range [][]rlock.LockOption{nil, {rlock.Lease(time.Hour)}} {
		name, j, third := redistest.Name(t), e.brisk.thread(t), e.session(t, patient)
		m := k.of(e.session(t, rlock.Config{RedissonWatchdog: short}).Session, name)
		j.do(k.java, name, "lock")
		section, h, err := m.TryLock(rlock.WithOwner(t.Context(), j.do(k.java, name, "owner")), opts...)
		locktest.Must(t, err)
		waiter := third.queue(t, name, k.of(third.Session, name).Lock)
		j.do(k.java, name, "unlock")
		if ttl := e.ttl(t, name); ttl > short {
			t.Fatalf("Redisson has left a lease of %v", ttl)
		}
		e.renewals(t, name, 4) // longer than that
		stillWaits(t, waiter, "a third owner")
		locktest.Must(t, context.Cause(section))
		locktest.Must(t, h.Unlock())
		locktest.Must(t, woken(t, waiter).h.Unlock())
	}
}

// What one session passes on in memory stays locked for Java, which has its turn now and then
// and in the end, or ends it by force.
func goHandsOver(t *testing.T, e *env, k kind) {
	name, j, w := redistest.Name(t), e.java.thread(t), e.other.thread(t)
	s := e.session(t, rlock.Config{PollFloor: patience, Lease: short})
	m := k.of(s.Session, name)
	for _, force := range []bool{false, true} {
		last := take(t, m.Lock)
		waiter := w.start(k.java, name, "lock")
		w.waits(waiter)
		for range 20 {
			next := s.begin(t, m.Lock)
			redistest.Eventually(t, answerTimeout, "the next one waits", func() bool { return s.began(name) > 0 })
			locktest.Must(t, last.h.Unlock())
			select {
			case last = <-next:
				locktest.Must(t, last.err)
			case a := <-waiter: // the session has left it to others
				locktest.Must(t, a.err)
				stillWaits(t, next, "Go")
				w.do(k.java, name, "unlock")
				last = woken(t, next)
				waiter = w.start(k.java, name, "lock")
				w.waits(waiter)
			}
			j.want("false", k.java, name, "try")
			stillWaits(t, waiter, "Java")
		}
		e.renewals(t, name, 3)
		e.wantHolds(t, name, s.ID(), k.field, "1")
		locktest.Must(t, context.Cause(last.section))
		if force {
			j.want("true", k.java, name, "force")
			locktest.Ends(t, last.section, short+5*time.Second, rlock.ErrLost)
			locktest.Is(t, "Unlock", last.h.Unlock(), rlock.ErrLost)
		} else {
			locktest.Must(t, last.h.Unlock())
		}
		wokenJava(t, waiter)
		w.do(k.java, name, "unlock")
	}
}

// wantHolds checks the one field that an owner of this process has in the lock's hash.
func (e *env) wantHolds(t testing.TB, name, owner, suffix, want string) {
	t.Helper()
	fields, err := e.admin.Do(t.Context(), e.admin.B().Hgetall().Key(e.key(name)).Build()).AsStrMap()
	locktest.Must(t, err)
	found := 0
	for field, holds := range fields {
		if strings.HasPrefix(field, owner+":") && strings.HasSuffix(field, suffix) {
			found++
			if holds != want {
				t.Fatalf("%s has %s holds, want %s", field, holds, want)
			}
		}
	}
	if found != 1 {
		t.Fatalf("%d fields of %s in %v, want one", found, owner, fields)
	}
}
