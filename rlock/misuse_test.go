package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// everything calls all methods of all handles of a session and returns their errors.
func everything(ses *rlock.Session, name string, ctx context.Context) map[string]error {
	errs := map[string]error{}
	handles(errs, "", ctx, rlock.New(ses, name), fairlock.New(ses, name+"f"), rwlock.New(ses, name+"w"),
		semaphore.New(ses, name+"s", 2), semaphore.NewCounter(ses, name+"c"))
	return errs
}

func handles(errs map[string]error, what string, ctx context.Context, m *rlock.Mutex, f *fairlock.Mutex,
	rw *rwlock.RWMutex, sem *semaphore.Semaphore, c *semaphore.Counter) {
	once := func(context.Context) error { return nil }
	held := func(_ context.Context, h *rlock.Hold, err error) error { return errors.Join(err, h.Unlock()) }
	took := func(_ context.Context, p *semaphore.Permits, err error) error { return errors.Join(err, p.Release()) }
	add := func(op string, err error) { errs[what+op] = err }
	add("Lock", held(m.Lock(ctx)))
	add("TryLock", held(m.TryLock(ctx)))
	add("Do", m.Do(ctx, once))
	add("State", locktest.Second(m.State(ctx)))
	add("ForceUnlock", locktest.Second(m.ForceUnlock(ctx)))
	add("fair Lock", held(f.Lock(ctx)))
	add("fair TryLock", held(f.TryLock(ctx)))
	add("fair Do", f.Do(ctx, once))
	add("fair State", locktest.Second(f.State(ctx)))
	add("fair ForceUnlock", locktest.Second(f.ForceUnlock(ctx)))
	add("Waiters", locktest.Second(f.Waiters(ctx)))
	add("rw Lock", held(rw.Lock(ctx)))
	add("rw RLock", held(rw.RLock(ctx)))
	add("rw TryLock", held(rw.TryLock(ctx)))
	add("rw TryRLock", held(rw.TryRLock(ctx)))
	add("rw Do", rw.Do(ctx, once))
	add("rw RDo", rw.RDo(ctx, once))
	add("rw State", locktest.Second(rw.State(ctx)))
	add("rw ForceUnlock", locktest.Second(rw.ForceUnlock(ctx)))
	add("rw Waiters", locktest.Second(rw.Waiters(ctx)))
	add("Acquire", took(sem.Acquire(ctx, 1)))
	add("TryAcquire", took(sem.TryAcquire(ctx, 1)))
	add("sem Do", sem.Do(ctx, 1, once))
	add("sem Available", locktest.Second(sem.Available(ctx)))
	add("SetLimit", sem.SetLimit(ctx, 2))
	add("Limit", locktest.Second(sem.Limit(ctx)))
	add("TrySet", locktest.Second(c.TrySet(ctx, 1)))
	add("counter Acquire", c.Acquire(ctx, 1))
	add("counter TryAcquire", c.TryAcquire(ctx, 1))
	add("Release", c.Release(ctx, 1))
	add("Add", c.Add(ctx, 1))
	add("Add 0", c.Add(ctx, 0))
	add("Drain", locktest.Second(c.Drain(ctx)))
	add("Available", locktest.Second(c.Available(ctx)))
}

// Misuse is an error of the call, not a panic and not a wait.
func TestMisuseIsAnError(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	ses := dial(t, s, rlock.Config{})
	ctx := context.Background()
	var nilCtx context.Context
	check := func(what string, errs map[string]error) {
		t.Helper()
		for op, err := range errs {
			if !errors.Is(err, rlock.ErrArgument) {
				t.Errorf("%s, %s: %v", what, op, err)
			}
		}
	}
	check("nil session", everything(nil, "x", ctx))
	zero := new(rlock.Session)
	check("zero session", everything(zero, "x", ctx))
	check("zero session, again", everything(zero, "x", ctx))
	check("nil context", everything(ses, "x", nilCtx))
	check("nil context with an owner", everything(ses, "x", rlock.WithOwner(nilCtx, "me")))
	check("nil context without", everything(ses, "x", rlock.WithoutOwner(nilCtx)))
	errs := map[string]error{}
	handles(errs, "nil ", ctx, nil, nil, nil, nil, nil)
	handles(errs, "zero ", ctx, new(rlock.Mutex), new(fairlock.Mutex), new(rwlock.RWMutex), new(semaphore.Semaphore), new(semaphore.Counter))
	check("handles", errs)

	if _, ok := rlock.OwnerFrom(nilCtx); ok {
		t.Error("a nil context names an owner")
	}
	var none *rlock.Session
	for what, s := range map[string]*rlock.Session{"nil": none, "zero": zero} {
		locktest.Is(t, what+" Close", s.Close(), rlock.ErrArgument)
		locktest.Is(t, what+" Close", s.Close(), rlock.ErrArgument)
		if s.ID() != "" {
			t.Errorf("%s: ID %q", what, s.ID())
		}
	}
	for what, h := range map[string]*rlock.Hold{"nil": nil, "zero": {}} {
		p := (*semaphore.Permits)(nil)
		if h != nil {
			p = new(semaphore.Permits)
		}
		for _, err := range []error{h.Unlock(), h.Abandon(), h.Extend(ctx, time.Second), p.Release(), p.Extend(ctx, time.Second)} {
			locktest.Is(t, what, err, rlock.ErrNotHeld)
		}
		if h.Owner()+p.Owner() != "" || h.Token() != 0 || h.Remaining()+p.Remaining() != 0 || p.N() != 0 {
			t.Errorf("%s: not zero", what)
		}
	}
}

// A long name is not repeated whole in an error: those end up in logs.
func TestErrorsCutLongNames(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	j := new(locktest.Journal)
	ses := dial(t, s, rlock.Config{Logger: j.Logger()})
	long := strings.Repeat("n", 1<<17)
	errs := everything(ses, long, rlock.WithOwner(context.Background(), ses.ID()+":"+long))
	for op, err := range everything(ses, long, nil) {
		errs["nil "+op] = err
	}
	n := 0
	for op, err := range errs {
		if err == nil {
			continue
		}
		n++
		if len(err.Error()) > 2000 || !strings.Contains(err.Error(), "nnnn") && !strings.Contains(err.Error(), "wait") {
			t.Errorf("%s: %d bytes: %.300s", op, len(err.Error()), err)
		}
	}
	if n < 30 {
		t.Errorf("only %d calls failed", n)
	}
}
