package multilock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// The wrong arguments are errors that change nothing; wrong receivers do not panic.
func TestBadInput(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses := dial(t, s, slow())
		ok := rlock.New(ses, "a")
		var nilFair *fairlock.Mutex
		var nilMutex *rlock.Mutex
		var nilMulti *multilock.Mutex
		var nilHold *multilock.Hold
		var noContext context.Context
		for what, c := range map[string]struct {
			m    *multilock.Mutex
			want error
		}{
			"no locks":          {multilock.New(), rlock.ErrArgument},
			"a nil part":        {multilock.New(ok, nil), rlock.ErrArgument},
			"a nil mutex":       {multilock.New(ok, nilMutex), rlock.ErrArgument},
			"a nil fair one":    {multilock.New(ok, nilFair), rlock.ErrArgument},
			"a zero fair one":   {multilock.New(ok, new(fairlock.Mutex)), rlock.ErrArgument},
			"a zero mutex":      {multilock.New(ok, new(rlock.Mutex)), rlock.ErrArgument},
			"a zero writer":     {multilock.New(ok, new(rwlock.RWMutex)), rlock.ErrArgument},
			"a nil reader":      {multilock.New(ok, multilock.Read(nil)), rlock.ErrArgument},
			"a zero semaphore":  {multilock.New(ok, multilock.Permits(new(semaphore.Semaphore), 1)), rlock.ErrArgument},
			"a nil semaphore":   {multilock.New(ok, multilock.Permits(nil, 1)), rlock.ErrArgument},
			"no permits":        {multilock.New(ok, multilock.Permits(semaphore.New(ses, "s", 3), 0)), semaphore.ErrLimit},
			"too many permits":  {multilock.New(ok, multilock.Permits(semaphore.New(ses, "s", 3), 4)), semaphore.ErrLimit},
			"a nil session":     {multilock.New(ok, rlock.New(nil, "b")), rlock.ErrArgument},
			"an empty name":     {multilock.New(ok, rlock.New(ses, "")), rlock.ErrName},
			"a zero multi-lock": {new(multilock.Mutex), rlock.ErrArgument},
			"a nil multi-lock":  {nilMulti, rlock.ErrArgument},
		} {
			_, h, err := c.m.Lock(ctx)
			is(t, what, err, c.want)
			is(t, what, h.Unlock(), rlock.ErrNotHeld)
			_, _, err = c.m.TryLock(ctx)
			is(t, what, err, c.want)
			is(t, what, c.m.Do(ctx, func(context.Context) error { t.Error(what); return nil }), c.want)
		}
		m := multilock.New(ok)
		for what, opt := range map[string]rlock.LockOption{"Wait": rlock.Wait(-1), "Lease": rlock.Lease(0), "nil": nil} {
			_, _, err := m.Lock(ctx, opt)
			is(t, what, err, rlock.ErrArgument)
		}
		_, _, err := m.Lock(noContext)
		is(t, "a nil context", err, rlock.ErrArgument)
		is(t, "Extend", nilHold.Extend(ctx, time.Second), rlock.ErrNotHeld)
		if nilHold.Remaining() != 0 || nilHold.Token(ok) != 0 || new(multilock.Hold).Remaining() != 0 {
			t.Error("a nil hold has something")
		}
	})
}
