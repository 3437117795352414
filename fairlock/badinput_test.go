package fairlock_test

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
)

func second[T any](_ T, err error) error { return err }

// Bad input gives an error that names what was wrong, and sends nothing.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	ses, proxy := dialProxy(t, s, rlock.Config{})
	ctx := context.Background()
	ok := fairlock.New(ses, "ok")
	fn := func(context.Context) error { return nil }
	lock := func(m *fairlock.Mutex, ctx context.Context, opts ...rlock.LockOption) error {
		got, h, err := m.Lock(ctx, opts...)
		if err != nil && (got != ctx || h != nil) {
			t.Error("a failed Lock must return the context it was given and no hold")
		}
		return err
	}
	try := func(m *fairlock.Mutex, ctx context.Context, opts ...rlock.LockOption) error {
		_, _, err := m.TryLock(ctx, opts...)
		return err
	}
	var nilCtx context.Context
	proxy.Reset()
	for _, c := range []struct {
		name string
		err  error
		want error
		text string
	}{
		{"empty name, Lock", lock(fairlock.New(ses, ""), ctx), rlock.ErrName, "empty"},
		{"empty name, TryLock", try(fairlock.New(ses, ""), ctx), rlock.ErrName, "empty"},
		{"empty name, Do", fairlock.New(ses, "").Do(ctx, fn), rlock.ErrName, "empty"},
		{"empty name, State", second(fairlock.New(ses, "").State(ctx)), rlock.ErrName, "empty"},
		{"empty name, Waiters", second(fairlock.New(ses, "").Waiters(ctx)), rlock.ErrName, "empty"},
		{"empty name, ForceUnlock", second(fairlock.New(ses, "").ForceUnlock(ctx)), rlock.ErrName, "empty"},
		{"nil session, Lock", lock(fairlock.New(nil, "x"), ctx), rlock.ErrArgument, "session is nil"},
		{"nil session, Waiters", second(fairlock.New(nil, "x").Waiters(ctx)), rlock.ErrArgument, "session is nil"},
		{"nil option of New", lock(fairlock.New(ses, "x", nil), ctx), rlock.ErrArgument, "nil MutexOption"},
		{"nil option of Lock", lock(ok, ctx, nil), rlock.ErrArgument, "nil LockOption"},
		{"negative wait", lock(ok, ctx, rlock.Wait(-1)), rlock.ErrArgument, "Wait(-1ns)"},
		{"lease of 0", lock(ok, ctx, rlock.Lease(0)), rlock.ErrArgument, "at least 1ms"},
		{"lease below 1 ms", try(ok, ctx, rlock.Lease(999*time.Microsecond)), rlock.ErrArgument, "at least 1ms"},
		{"empty owner", lock(ok, rlock.WithOwner(ctx, "")), rlock.ErrArgument, "empty id"},
		{"nil fn", ok.Do(ctx, nil), rlock.ErrArgument, "fn is nil"},
		{"nil ctx, Lock", lock(ok, nilCtx), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, State", second(ok.State(nilCtx)), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, Waiters", second(ok.Waiters(nilCtx)), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, ForceUnlock", second(ok.ForceUnlock(nilCtx)), rlock.ErrArgument, "ctx is nil"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: got %v; want %v with %q", c.name, c.err, c.want, c.text)
		}
		for _, e := range sentinels {
			if e != c.want && errors.Is(c.err, e) {
				t.Errorf("%s: also matches %v", c.name, e)
			}
		}
	}
	if n := proxy.Count(); n != 0 {
		t.Errorf("%d commands were sent: %q", n, proxy.Log())
	}
}

var sentinels = []error{
	rlock.ErrNotAcquired, rlock.ErrNotHeld, rlock.ErrLost, rlock.ErrReleased,
	rlock.ErrClosed, rlock.ErrName, rlock.ErrConfig, rlock.ErrArgument,
}

// A key of another type gives Redis's WRONGTYPE, none of the sentinels, and stays as it is.
func TestKeyOfAnotherType(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		m := fairlock.New(dial(t, s, rlock.Config{}), "x")
		for _, key := range []string{"x", "relock_line1:{x}"} {
			must(t, s.Do(t, "SET", key, "a string").Error())
			if key != "x" { // else nobody needs the line
				must(t, s.Do(t, "HSET", "x", "somebody", "1").Error())
				must(t, s.Do(t, "PEXPIRE", "x", locktest.Forever).Error())
			}
			before := locktest.Describe(t, s)
			errs := map[string]error{}
			_, _, errs["Lock"] = m.Lock(ctx)
			_, _, errs["Lock by name"] = m.Lock(rlock.WithOwner(ctx, "me"), rlock.Lease(time.Minute))
			switch key {
			case "x":
				_, errs["ForceUnlock"] = m.ForceUnlock(ctx)
				_, _, errs["TryLock"] = m.TryLock(ctx)
				_, errs["State"] = m.State(ctx)
			default:
				_, errs["Waiters"] = m.Waiters(ctx)
			}
			for what, err := range errs {
				if !hasText(err, "WRONGTYPE") {
					t.Errorf("%s with a string in %s: %v", what, key, err)
				}
				for _, e := range sentinels {
					if errors.Is(err, e) {
						t.Errorf("%s: %v also matches %v", what, err, e)
					}
				}
			}
			if after := locktest.Describe(t, s); after != before {
				t.Errorf("with a string in %s there was %q, and is %q", key, before, after)
			}
			s.FlushAll(t)
		}
	})
}

// A hash that is no lock, since its values are no counts, is an error too, and stays as it is.
func TestHashThatIsNoLock(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		m := fairlock.New(dial(t, s, rlock.Config{}), "x")
		for _, value := range []string{"bob", "0", ""} {
			must(t, s.Do(t, "HSET", "x", "me", value).Error())
			before := locktest.Describe(t, s)
			errs := map[string]error{}
			_, _, errs["Lock"] = m.Lock(ctx)
			_, _, errs["TryLock"] = m.TryLock(ctx)
			_, _, errs["Lock by name"] = m.Lock(rlock.WithOwner(ctx, "me"))
			_, errs["ForceUnlock"] = m.ForceUnlock(ctx)
			for what, err := range errs {
				if !hasText(err, "no lock") || errors.Is(err, rlock.ErrNotAcquired) {
					t.Errorf("%s where the value is %q: %v", what, value, err)
				}
			}
			if after := locktest.Describe(t, s); after != before {
				t.Errorf("there was %q, and is %q", before, after)
			}
		}
	})
}

// A server without memory takes an Unlock, and the release lets the next waiter in.
func TestUnlockWithoutMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ctx := within(t, patience)
	a, b := dial(t, s, silent()), dial(t, s, silent())
	m := fairlock.New(a, "x")
	first := lock(t, ctx, m)
	next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
	must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	unlock(t, first)
	l := granted(t, next, patience, "the waiter")
	_, _, err := fairlock.New(a, "y").TryLock(ctx)
	if !hasText(err, "OOM") {
		t.Errorf("TryLock without memory: %v", err)
	}
	unlock(t, l)
	must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "0").Error())
	nothingLeft(t, s)
}
