package rwlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Bad input gives an error that names what was wrong, and changes nothing.
func TestBadArguments(t *testing.T) {
	s := redistest.Mini(t)
	ses, p := locktest.DialProxy(t, s, slow)
	ctx := within(t, 30*time.Second)
	ok := rwlock.New(ses, "ok")
	fn := func(context.Context) error { t.Error("fn was run"); return nil }
	var nilCtx context.Context
	p.Reset()
	for _, c := range []struct {
		name string
		m    *rwlock.RWMutex
		ctx  context.Context
		opts []rlock.LockOption
		want error
		text string
	}{
		{"empty name", rwlock.New(ses, ""), ctx, nil, rlock.ErrName, "empty"},
		{"nil session", rwlock.New(nil, "x"), ctx, nil, rlock.ErrArgument, "session is nil"},
		{"nil option", ok, ctx, []rlock.LockOption{nil}, rlock.ErrArgument, "nil LockOption"},
		{"negative wait", ok, ctx, []rlock.LockOption{rlock.Wait(-1)}, rlock.ErrArgument, "Wait(-1ns)"},
		{"lease below 1 ms", ok, ctx, []rlock.LockOption{rlock.Lease(999 * time.Microsecond)}, rlock.ErrArgument, "at least 1ms"},
		{"empty owner", ok, rlock.WithOwner(ctx, ""), nil, rlock.ErrArgument, "empty id"},
		{"owner mode", ok, rlock.WithOwner(ctx, "mode"), nil, rlock.ErrArgument, `owner "mode"`},
		{"owner that looks like a writer", ok, rlock.WithOwner(ctx, "me:write"), nil, rlock.ErrArgument, `owner "me:write"`},
		{"nil ctx", ok, nilCtx, nil, rlock.ErrArgument, "ctx is nil"},
	} {
		for op, lock := range map[string]lockFunc{"RLock": c.m.RLock, "TryRLock": c.m.TryRLock, "Lock": c.m.Lock, "TryLock": c.m.TryLock} {
			got, h, err := lock(c.ctx, c.opts...)
			if got != c.ctx || h != nil {
				t.Errorf("%s, %s: another context or a hold", c.name, op)
			}
			wants(t, c.name+", "+op, err, c.want, c.text)
		}
		wants(t, c.name+", RDo", c.m.RDo(c.ctx, fn, c.opts...), c.want, c.text)
		wants(t, c.name+", Do", c.m.Do(c.ctx, fn, c.opts...), c.want, c.text)
		if c.m != ok || c.ctx == nil {
			_, err := c.m.State(c.ctx)
			wants(t, c.name+", State", err, c.want, c.text)
			_, err = c.m.ForceUnlock(c.ctx)
			wants(t, c.name+", ForceUnlock", err, c.want, c.text)
			_, err = c.m.Waiters(c.ctx)
			wants(t, c.name+", Waiters", err, c.want, c.text)
		}
	}
	wants(t, "nil fn, RDo", ok.RDo(ctx, nil), rlock.ErrArgument, "fn is nil")
	wants(t, "nil fn, Do", ok.Do(ctx, nil), rlock.ErrArgument, "fn is nil")
	if p.Count() != 0 {
		t.Errorf("bad input reached Redis: %q", p.Log())
	}
}

func wants(t *testing.T, what string, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v; want %v with %q", what, err, want, text)
	}
	for _, e := range []error{
		rlock.ErrNotAcquired, rlock.ErrNotHeld, rlock.ErrLost, rlock.ErrReleased, rlock.ErrClosed,
		rlock.ErrName, rlock.ErrConfig, rlock.ErrArgument, rwlock.ErrUpgrade,
	} {
		if e != want && errors.Is(err, e) {
			t.Errorf("%s: %v also matches %v", what, err, e)
		}
	}
}

// A key of another type is WRONGTYPE and none of the package's errors, whichever of the
// lock's keys it is, and nothing is changed (R30).
func TestWrongType(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 30*time.Second), "me")
		for _, key := range []string{"x", "relock_readers:{x}", "relock_line1:{x}", "relock_rw_holds:{x}:me"} {
			must(t, s.Do(t, "SET", key, "1").Error())
			for op, lock := range map[string]lockFunc{"RLock": m.RLock, "TryRLock": m.TryRLock, "Lock": m.Lock, "TryLock": m.TryLock} {
				_, _, err := lock(ctx)
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || errors.Is(err, rlock.ErrNotAcquired) {
					t.Errorf("%s, %s: %v", key, op, err)
				}
			}
			if got, want := locktest.Describe(t, s), key+"=1"; got != want {
				t.Errorf("Redis has %q, want %q", got, want)
			}
			s.FlushAll(t)
		}
		// Another kind of lock under the name excludes, and is not forced.
		_, h, err := rlock.New(dial(t, s, slow), "x").Lock(ctx)
		must(t, err)
		refused(t, ctx, m.TryRLock, "a reader beside a Mutex of the same owner")
		refused(t, ctx, m.TryLock, "a writer beside a Mutex of the same owner")
		if _, err := m.ForceUnlock(ctx); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("ForceUnlock of a Mutex: %v", err)
		}
		must(t, h.Unlock())
	})
}
