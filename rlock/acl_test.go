package rlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// The ACL that docs/operations.md gives is enough to run everything (R29).
func TestDocumentedACLIsEnough(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	s := redistest.Real(t)
	must(t, s.Do(t, redistest.DocumentedACL(t)...).Error())
	must(t, s.Do(t, "ACL", "LOG", "RESET").Error())

	opt := s.Option()
	opt.Username, opt.Password = "locks", "secret"
	ctx := within(t, 30*time.Second)
	open := func() *rlock.Session {
		ses, err := rlock.Dial(ctx, opt, rlock.Config{Prefix: "app:", Lease: 6 * time.Second, PollFloor: time.Minute})
		must(t, err)
		t.Cleanup(func() { must(t, ses.Close()) })
		return ses
	}
	a, b := open(), open()
	for _, ctx := range []context.Context{ctx, rlock.WithOwner(ctx, "me")} {
		runMutex(t, ctx, s, a, b)
	}
	var handed sync.WaitGroup // in memory
	for range 50 {
		handed.Go(func() {
			nothing := func(context.Context) error { return nil }
			x, rw := rlock.New(a, "y"), rwlock.New(a, "z")
			if err := errors.Join(x.Do(ctx, nothing), rw.Do(ctx, nothing), rw.RDo(ctx, nothing)); err != nil {
				t.Error(err)
			}
		})
	}
	handed.Wait()
	r := locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(a, "y"), Wants: rwlock.New(a, "z")}, locktest.Party{Holds: rwlock.New(b, "z"), Wants: rlock.New(b, "y")})
	r.Wait(0)
	r.Wait(1)
	r.Resolve(10 * time.Second)
	runVariants(t, ctx, a, b)
	denied, err := s.Do(t, "ACL", "LOG").ToArray()
	must(t, err)
	for _, d := range denied {
		entry, _ := d.AsStrMap()
		t.Errorf("denied: %v %v", entry["reason"], entry["object"])
	}
}

// Where an ACL forbids what the scripts do, the error says so, and not that the key is of
// another type.
func TestACLRefusalIsNamed(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	must(t, s.Do(t, "ACL", "SETUSER", "few", "on", ">secret", "~*", "&*", "+@all", "-exists", "-hget", "-hgetall", "-hkeys").Error())
	opt := s.Option()
	opt.Username, opt.Password = "few", "secret"
	ctx := within(t, 20*time.Second)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{})
	must(t, err)
	defer ses.Close()
	m := rlock.New(ses, "x")
	_, _, lock := m.TryLock(ctx)
	_, _, named := m.TryLock(rlock.WithOwner(ctx, "me"))
	_, state := m.State(ctx)
	_, force := m.ForceUnlock(ctx)
	for what, err := range map[string]error{"TryLock": lock, "TryLock by name": named, "State": state, "ForceUnlock": force} {
		if !errors.Is(err, rlock.ErrUnavailable) || strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// runMutex has a mutex, held by a, do everything that it can but pass in memory, and that of b wait.
func runMutex(t *testing.T, ctx context.Context, s *redistest.Server, a, b *rlock.Session) {
	t.Helper()
	section, h, err := rlock.New(a, "x", rlock.Fenced()).Lock(ctx)
	must(t, err)
	_, nested, err := rlock.New(a, "x").Lock(section, rlock.Lease(time.Minute))
	must(t, err)
	must(t, nested.Extend(ctx, 2*time.Minute))
	must(t, nested.Unlock())
	_, _, err = rlock.New(b, "x").Lock(context.Background(), rlock.Wait(2500*time.Millisecond)) // renewed meanwhile
	if !errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("a held lock: %v", err)
	}
	in := make(chan error, 1)
	go func() {
		_, h, err := rlock.New(b, "x").Lock(rlock.WithOwner(ctx, "another"))
		if err == nil {
			err = h.Unlock()
		}
		in <- err
	}()
	redistest.Eventually(t, 5*time.Second, "the waiter to listen", func() bool { return len(s.Channels(t)) == 3 })
	if st, err := rlock.New(b, "x").State(ctx); err != nil || len(st.Owners) != 1 {
		t.Errorf("State: %+v, %v", st, err)
	}
	_, err = rlock.New(b, "x").ForceUnlock(ctx)
	must(t, err)
	<-section.Done()
	must(t, <-in)
	if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
		t.Errorf("Unlock after ForceUnlock: %v", err)
	}
}

// runVariants has every variant do everything that it can. Where an owner waits it is for
// an event that only the right to do so brings about: polling is off.
func runVariants(t *testing.T, ctx context.Context, a, b *rlock.Session) {
	t.Helper()
	// contend lets b wait for what a holds, and a release it.
	contend := func(what string, unlock func() error, lock func() error) {
		t.Helper()
		in := make(chan error, 1)
		go func() { in <- lock() }()
		redistest.Eventually(t, 5*time.Second, what+": somebody to wait", func() bool {
			_, pending, _, _, _ := locktest.Books(b)
			return pending == 1
		})
		must(t, unlock())
		if err := locktest.Get(t, in, 10*time.Second, what+": the waiter to get in"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	runLocks(t, ctx, a, b, contend)
	runPermits(t, ctx, a, b, contend)
}

// once is a section in which nothing is done.
func once(context.Context) error { return nil }

// runLocks has the fair lock and the read-write lock do everything that they can.
func runLocks(t *testing.T, ctx context.Context, a, b *rlock.Session, contend func(what string, unlock, lock func() error)) {
	t.Helper()
	fair := fairlock.New(a, "fair", rlock.Fenced())
	section, h, err := fair.Lock(ctx)
	must(t, err)
	_, nested, err := fair.Lock(section, rlock.Lease(time.Minute))
	must(t, err)
	must(t, nested.Unlock())
	contend("fairlock", h.Unlock, func() error { return fairlock.New(b, "fair", rlock.Fenced()).Do(ctx, once) })
	_, _, err = fair.Lock(ctx)
	must(t, err)
	_, err = fair.Waiters(ctx)
	must(t, err)
	_, err = fair.ForceUnlock(ctx)
	must(t, err)

	rw, other := rwlock.New(a, "rw"), rwlock.New(b, "rw")
	section, w, err := rw.Lock(ctx)
	must(t, err)
	section, r, err := rw.RLock(section)
	must(t, err)
	_, nested, err = rw.RLock(section, rlock.Lease(time.Minute))
	must(t, err)
	must(t, nested.Extend(ctx, time.Minute))
	must(t, nested.Unlock())
	contend("downgrade", w.Unlock, func() error { return other.RDo(ctx, once) })
	contend("write lock", r.Unlock, func() error { return other.Do(ctx, once) })
	_, _, err = rw.RLock(ctx)
	must(t, err)
	_, err = rw.State(ctx)
	must(t, err)
	_, err = rw.ForceUnlock(ctx)
	must(t, err)
}

// runPermits has the semaphore and the counter do everything that they can.
func runPermits(t *testing.T, ctx context.Context, a, b *rlock.Session, contend func(what string, unlock, lock func() error)) {
	t.Helper()
	sem := semaphore.New(a, "sem", 2)
	_, p, err := sem.Acquire(ctx, 2)
	must(t, err)
	contend("semaphore", p.Release, func() error { return semaphore.New(b, "sem", 2).Do(ctx, 1, once) })
	must(t, sem.SetLimit(ctx, 3))
	_, err = sem.Available(ctx)
	must(t, err)

	counter := semaphore.NewCounter(a, "counter")
	_, err = counter.TrySet(ctx, 1)
	must(t, err)
	must(t, counter.TryAcquire(ctx, 1))
	contend("counter", func() error { return counter.Release(ctx, 1) }, func() error { return semaphore.NewCounter(b, "counter").Acquire(ctx, 1) })
	must(t, counter.Add(ctx, 2))
	_, err = counter.Drain(ctx)
	must(t, err)
	_, err = counter.Available(ctx)
	must(t, err)
}
