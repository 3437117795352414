package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

var sentinels = []error{
	rlock.ErrNotAcquired, rlock.ErrNotHeld, rlock.ErrLost, rlock.ErrReleased, rlock.ErrClosed,
	rlock.ErrName, rlock.ErrConfig, rlock.ErrArgument, semaphore.ErrLimit,
}

// A badCall is one with bad input, and the error that is wanted.
type badCall struct {
	name string
	err  error
	want error
	text string
}

// checkBad checks that each error names what was wrong, and that nothing was sent.
func checkBad(t *testing.T, p *faulttest.Proxy, calls []badCall) {
	t.Helper()
	for _, c := range calls {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: got %v; want %v with %q", c.name, c.err, c.want, c.text)
		}
		for _, e := range sentinels {
			if e != c.want && errors.Is(c.err, e) {
				t.Errorf("%s: also matches %v", c.name, e)
			}
		}
	}
	if log := p.Log(); len(log) != 0 {
		t.Errorf("sent: %q", log)
	}
}

// huge is more than a count may be.
const huge = 1<<53 + 1

// Bad input gives an error that names what was wrong, and sends nothing.
func TestBadArguments(t *testing.T) {
	s := redistest.Mini(t)
	ses, p := locktest.DialProxy(t, s, rlock.Config{})
	ctx := context.Background()
	var nilCtx context.Context
	fn := func(context.Context) error { return nil }
	ok := semaphore.New(ses, "ok", 3)
	acquire := func(m *semaphore.Semaphore, ctx context.Context, n int, opts ...rlock.LockOption) error {
		got, p, err := m.Acquire(ctx, n, opts...)
		_, tryP, tryErr := m.TryAcquire(ctx, n, opts...)
		if got != ctx || p != nil || tryP != nil || (err == nil) != (tryErr == nil) {
			t.Errorf("Acquire: %v, %v; TryAcquire: %v", p, err, tryErr)
		}
		return err
	}
	p.Reset()
	checkBad(t, p, []badCall{
		{"limit of 0", acquire(semaphore.New(ses, "x", 0), ctx, 1), rlock.ErrArgument, "the limit is 0"},
		{"limit below 0, Available", second(semaphore.New(ses, "x", -1).Available(ctx)), rlock.ErrArgument, "the limit is -1"},
		{"limit below 0, SetLimit", semaphore.New(ses, "x", -1).SetLimit(ctx, 1), rlock.ErrArgument, "the limit is -1"},
		{"limit below 0, Do", semaphore.New(ses, "x", -1).Do(ctx, 1, fn), rlock.ErrArgument, "the limit is -1"},
		{"huge limit", acquire(semaphore.New(ses, "x", huge), ctx, 1), rlock.ErrArgument, "at most"},
		{"SetLimit below 0", ok.SetLimit(ctx, -1), rlock.ErrArgument, "the limit is -1"},
		{"SetLimit, huge", ok.SetLimit(ctx, huge), rlock.ErrArgument, "at most"},
		{"empty name", acquire(semaphore.New(ses, "", 1), ctx, 1), rlock.ErrName, "empty"},
		{"empty name, Do", semaphore.New(ses, "", 1).Do(ctx, 1, fn), rlock.ErrName, "empty"},
		{"nil session", acquire(semaphore.New(nil, "x", 1), ctx, 1), rlock.ErrArgument, "session is nil"},
		{"nil session, Available", second(semaphore.New(nil, "x", 1).Available(ctx)), rlock.ErrArgument, "session is nil"},
		{"n of 0", acquire(ok, ctx, 0), semaphore.ErrLimit, "n is 0"},
		{"n below 0", acquire(ok, ctx, -1), semaphore.ErrLimit, "n is -1"},
		{"more than one request is for", acquire(ok, ctx, semaphore.MaxAtOnce+1), semaphore.ErrLimit, "at most 10000"},
		{"n of 0, Do", ok.Do(ctx, 0, fn), semaphore.ErrLimit, "n is 0"},
		{"an end of nothing", acquire(semaphore.New(ses, "x", 1, semaphore.Expire(0)), ctx, 1), rlock.ErrArgument, "Expire(0s)"},
		{"nil Option", semaphore.New(ses, "x", 1, nil).Delete(ctx), rlock.ErrArgument, "nil Option"},
		{"nil ctx, Delete", ok.Delete(nilCtx), rlock.ErrArgument, "ctx is nil"},
		{"nil fn", ok.Do(ctx, 1, nil), rlock.ErrArgument, "fn is nil"},
		{"nil ctx", acquire(ok, nilCtx, 1), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, Available", second(ok.Available(nilCtx)), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, SetLimit", ok.SetLimit(nilCtx, 1), rlock.ErrArgument, "ctx is nil"},
		{"negative wait", acquire(ok, ctx, 1, rlock.Wait(-1)), rlock.ErrArgument, "Wait(-1ns)"},
		{"lease of 0", acquire(ok, ctx, 1, rlock.Lease(0)), rlock.ErrArgument, "at least 1ms"},
		{"nil option", acquire(ok, ctx, 1, nil), rlock.ErrArgument, "nil LockOption"},
	})
}

// The same for a counter.
func TestBadArgumentsOfACounter(t *testing.T) {
	s := redistest.Mini(t)
	ses, p := locktest.DialProxy(t, s, rlock.Config{})
	ctx := context.Background()
	var nilCtx context.Context
	c := semaphore.NewCounter(ses, "c")
	p.Reset()
	checkBad(t, p, []badCall{
		{"an end of nothing", semaphore.NewCounter(ses, "x", semaphore.Expire(time.Millisecond)).Release(ctx, 1), rlock.ErrArgument, "Expire(1ms)"},
		{"empty name", semaphore.NewCounter(ses, "").Acquire(ctx, 1), rlock.ErrName, "empty"},
		{"nil session", semaphore.NewCounter(nil, "x").Acquire(ctx, 1), rlock.ErrArgument, "session is nil"},
		{"nil session, Release", semaphore.NewCounter(nil, "x").Release(ctx, 1), rlock.ErrArgument, "session is nil"},
		{"nil session, Drain", second(semaphore.NewCounter(nil, "x").Drain(ctx)), rlock.ErrArgument, "session is nil"},
		{"Acquire(0)", c.Acquire(ctx, 0), rlock.ErrArgument, "n is 0"},
		{"a lease", c.Acquire(ctx, 1, rlock.Lease(time.Minute)), rlock.ErrArgument, "nothing is leased"},
		{"TryAcquire(0)", c.TryAcquire(ctx, 0), rlock.ErrArgument, "n is 0"},
		{"TryAcquire(-1)", c.TryAcquire(ctx, -1), rlock.ErrArgument, "n is -1"},
		{"Release(0)", c.Release(ctx, 0), rlock.ErrArgument, "n is 0"},
		{"Release(-1)", c.Release(ctx, -1), rlock.ErrArgument, "n is -1"},
		{"Release, huge", c.Release(ctx, huge), rlock.ErrArgument, "at most"},
		{"Add, huge", c.Add(ctx, -huge), rlock.ErrArgument, "at least"},
		{"TrySet(-1)", second(c.TrySet(ctx, -1)), rlock.ErrArgument, "permits is -1"},
		{"nil ctx, Acquire", c.Acquire(nilCtx, 1), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, Release", c.Release(nilCtx, 1), rlock.ErrArgument, "ctx is nil"},
		{"nil option", c.Acquire(ctx, 1, nil), rlock.ErrArgument, "nil LockOption"},
	})
}

// A key of another type gives Redis's own error, at once, and changes nothing (R20, R30).
func TestKeyOfAnotherType(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		m, c := semaphore.New(ses, "x", 3), semaphore.NewCounter(ses, "x")
		must(t, s.Do(t, "HSET", "x", "a", "1").Error())
		_, _, err := m.Acquire(ctx, 1)
		_, _, tryErr := m.TryAcquire(ctx, 1)
		for what, err := range map[string]error{
			"Acquire": err, "TryAcquire": tryErr, "SetLimit": m.SetLimit(ctx, 2), "Available": second(m.Available(ctx)),
			"Counter.Acquire": c.Acquire(ctx, 1), "Counter.TryAcquire": c.TryAcquire(ctx, 1), "Counter.Release": c.Release(ctx, 1),
			"Counter.Add": c.Add(ctx, 0), "Counter.Drain": second(c.Drain(ctx)), "Counter.TrySet": second(c.TrySet(ctx, 1)),
			"Counter.Available": second(c.Available(ctx)),
		} {
			if re, ok := rueidis.IsRedisErr(unwrapAll(err)); !ok || !strings.HasPrefix(re.Error(), "WRONGTYPE") {
				t.Errorf("%s: %v", what, err)
			}
			for _, e := range sentinels {
				if errors.Is(err, e) {
					t.Errorf("%s: %v matches %v", what, err, e)
				}
			}
		}
		if got := locktest.Describe(t, s); got != "x{a:1}" {
			t.Errorf("Redis has %s", got)
		}
	})
}

// A Counter says so where permits of a Semaphore of its name are taken, and a Semaphore that is
// asked for its limit, or given one, where the session uses a Counter of its name. Nothing is
// changed.
func TestSemaphoreAndCounterOfOneName(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		m, c := semaphore.New(ses, "x", 3), semaphore.NewCounter(ses, "x")
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		for what, err := range map[string]error{
			"Acquire": c.Acquire(ctx, 1), "TryAcquire": c.TryAcquire(ctx, 1), "Release": c.Release(ctx, 1), "Add": c.Add(ctx, -1),
			"Drain": second(c.Drain(ctx)), "TrySet": second(c.TrySet(ctx, 1)), "Available": second(c.Available(ctx)),
		} {
			if err == nil || !strings.Contains(err.Error(), "permits of a Semaphore of this name are taken") {
				t.Errorf("Counter.%s: %v", what, err)
			}
		}
		available(t, ctx, m, 2)
		must(t, p.Release())
		must(t, c.Release(ctx, 4))
		for what, err := range map[string]error{
			"Available": second(m.Available(ctx)), "Limit": second(m.Limit(ctx)), "SetLimit": m.SetLimit(ctx, 1),
		} {
			if err == nil || !strings.Contains(err.Error(), "a Counter of this name is in use") {
				t.Errorf("Semaphore.%s: %v", what, err)
			}
		}
		available(t, ctx, c, 7)
	})
}

func unwrapAll(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// Any name works, and all its keys go along (R29).
func TestOddNames(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		for _, name := range oddNames {
			oddName(t, ses, name)
		}
	})
}

var oddNames = []string{
	"a}b", "a{b", "{}x", "{b}", "a{b}c", "}{", "{", "}", "{}", "{}{b}", "{{b}}", "{b}{c}", " ", "two words",
	"tab\tand\nline", "\x00\xff\xfe{\x80", "ключ-🔒", strings.Repeat("k", 1024), "a:b:c", "*?[x]", "%d",
}

// oddName does everything there is once.
func oddName(t *testing.T, ses *rlock.Session, name string) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	m := semaphore.New(ses, name, 2)
	_, p, err := m.Acquire(ctx, 2)
	must(t, err)
	next := acquire(ctx, m, 1)
	available(t, ctx, m, 0)
	must(t, p.Release())
	g := locktest.Get(t, next, 10*time.Second, "the waiter")
	must(t, g.err)
	must(t, g.p.Release())
	_, p, err = m.TryAcquire(ctx, 1, rlock.Lease(time.Minute))
	must(t, err)
	must(t, p.Extend(ctx, 2*time.Minute))
	must(t, p.Release())
	must(t, m.SetLimit(ctx, 4))
	available(t, ctx, m, 4)
	_, p, err = semaphore.New(ses, name, 2, semaphore.Expire(time.Minute)).Acquire(ctx, 2)
	must(t, err)
	must(t, m.ExtendByID(ctx, time.Minute, p.IDs()...))
	must(t, m.ReleaseByID(ctx, p.IDs()...))
	is(t, "Release", p.Release(), rlock.ErrLost)
	must(t, m.Delete(ctx))

	c := semaphore.NewCounter(ses, name+"/c", semaphore.Expire(time.Minute))
	if ok, err := c.TrySet(ctx, 1); !ok || err != nil {
		t.Errorf("TrySet: %v, %v", ok, err)
	}
	must(t, c.Acquire(ctx, 1))
	must(t, c.Add(ctx, 3))
	must(t, c.Release(ctx, 1))
	must(t, c.TryAcquire(ctx, 2))
	drain(t, ctx, c, 2)
	available(t, ctx, c, 0)
	must(t, c.Delete(ctx))
}
