package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Bad input gives an error that names what was wrong, and sends nothing.
func TestBadArguments(t *testing.T) {
	s := redistest.Mini(t)
	ses := dial(t, s, rlock.Config{})
	ctx := context.Background()
	ok := rlock.New(ses, "ok")
	fn := func(context.Context) error { return nil }
	lock := func(m *rlock.Mutex, ctx context.Context, opts ...rlock.LockOption) error {
		got, h, err := m.Lock(ctx, opts...)
		if err != nil && (got != ctx || h != nil) {
			t.Error("a failed Lock must return the context it was given and no hold")
		}
		return err
	}
	var nilCtx context.Context
	_, fixed, err := ok.Lock(ctx, rlock.Lease(time.Minute))
	must(t, err)
	_, auto, err := rlock.New(ses, "auto").Lock(ctx)
	must(t, err)
	before := describeAll(t, s)

	for _, c := range []refusal{
		{"empty name, Lock", lock(rlock.New(ses, ""), ctx), rlock.ErrName, "empty"},
		{"empty name, Do", rlock.New(ses, "").Do(ctx, fn), rlock.ErrName, "empty"},
		{"empty name, State", locktest.Second(rlock.New(ses, "").State(ctx)), rlock.ErrName, "empty"},
		{"empty name, ForceUnlock", locktest.Second(rlock.New(ses, "").ForceUnlock(ctx)), rlock.ErrName, "empty"},
		{"nil session", lock(rlock.New(nil, "x"), ctx), rlock.ErrArgument, "session is nil"},
		{"nil session, State", locktest.Second(rlock.New(nil, "x").State(ctx)), rlock.ErrArgument, "session is nil"},
		{"nil option of New", lock(rlock.New(ses, "x", nil), ctx), rlock.ErrArgument, "nil MutexOption"},
		{"nil option of Lock", lock(ok, ctx, nil), rlock.ErrArgument, "nil LockOption"},
		{"negative wait", lock(ok, ctx, rlock.Wait(-1)), rlock.ErrArgument, "Wait(-1ns)"},
		{"lease of 0", lock(ok, ctx, rlock.Lease(0)), rlock.ErrArgument, "at least 1ms"},
		{"lease below 1 ms", lock(ok, ctx, rlock.Lease(999*time.Microsecond)), rlock.ErrArgument, "at least 1ms"},
		{"negative lease", lock(ok, ctx, rlock.Lease(-time.Second)), rlock.ErrArgument, "at least 1ms"},
		{"the first bad option wins", lock(ok, ctx, rlock.Lease(0), rlock.Wait(-1)), rlock.ErrArgument, "Lease(0s)"},
		{"empty owner", lock(ok, rlock.WithOwner(ctx, "")), rlock.ErrArgument, "empty id"},
		{"nil fn", ok.Do(ctx, nil), rlock.ErrArgument, "fn is nil"},
		{"nil ctx, Lock", lock(ok, nilCtx), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, State", locktest.Second(ok.State(nilCtx)), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, ForceUnlock", locktest.Second(ok.ForceUnlock(nilCtx)), rlock.ErrArgument, "ctx is nil"},
		{"nil ctx, Extend", fixed.Extend(nilCtx, time.Second), rlock.ErrArgument, "ctx is nil"},
		{"Extend by too little", fixed.Extend(ctx, time.Microsecond), rlock.ErrArgument, "at least 1ms"},
		{"Extend of a renewed hold", auto.Extend(ctx, time.Minute), rlock.ErrArgument, "watchdog"},
	} {
		c.check(t)
	}
	if after := describeAll(t, s); after != before {
		t.Errorf("Redis was changed:\n%s\n%s", before, after)
	}
	must(t, fixed.Unlock())
	must(t, auto.Unlock())
}

// A refusal is the error of a call, and what it has to be.
type refusal struct {
	name string
	err  error
	want error  // and no other sentinel
	text string // which the error has
}

func (r refusal) check(t *testing.T) {
	t.Helper()
	if !errors.Is(r.err, r.want) || !strings.Contains(r.err.Error(), r.text) {
		t.Errorf("%s: got %v; want %v with %q", r.name, r.err, r.want, r.text)
	}
	for _, e := range sentinels {
		if e != r.want && errors.Is(r.err, e) {
			t.Errorf("%s: also matches %v", r.name, e)
		}
	}
}

var sentinels = []error{
	rlock.ErrNotAcquired, rlock.ErrNotHeld, rlock.ErrLost, rlock.ErrReleased,
	rlock.ErrClosed, rlock.ErrName, rlock.ErrConfig, rlock.ErrArgument,
}

func describeAll(t *testing.T, s *redistest.Server) string { return locktest.Describe(t, s) }

func TestBadConfigNamesTheField(t *testing.T) {
	s := redistest.Mini(t)
	client := s.Client(t)
	ctx := context.Background()
	for field, cfg := range map[string]rlock.Config{
		"Lease is -1s":             {Lease: -time.Second},
		"Lease is 999µs":           {Lease: 999 * time.Microsecond},
		"ReleaseTimeout is -1ns":   {ReleaseTimeout: -1},
		"PollFloor is -1ns":        {PollFloor: -1},
		"QueueLease is 1µs":        {QueueLease: time.Microsecond},
		"RedissonWatchdog is -1ns": {RedissonWatchdog: -1},
		"HandOverLimit is -2":      {HandOverLimit: -2},
	} {
		_, err := rlock.NewSession(ctx, client, cfg)
		_, err2 := rlock.Dial(ctx, s.Option(), cfg)
		for _, err := range []error{err, err2} {
			if !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: got %v", field, err)
			}
		}
	}
	if _, err := rlock.NewSession(ctx, nil, rlock.Config{}); !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), "client is nil") {
		t.Errorf("nil client: %v", err)
	}
	var nilCtx context.Context
	if _, err := rlock.NewSession(nilCtx, client, rlock.Config{}); !errors.Is(err, rlock.ErrArgument) {
		t.Errorf("nil ctx: %v", err)
	}
	if _, err := rlock.Dial(ctx, rueidis.ClientOption{}, rlock.Config{}); !errors.Is(err, rlock.ErrConfig) {
		t.Errorf("no address: %v", err)
	}
}

// NewSession and Dial report a server that is not there, and a context that is over.
func TestNoServer(t *testing.T) {
	s := redistest.Mini(t)
	client := s.Client(t)
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := rlock.NewSession(done, client, rlock.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("NewSession with a ctx that is over: %v", err)
	}
	if _, err := rlock.Dial(done, s.Option(), rlock.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial with a ctx that is over: %v", err)
	}
	opt := s.Option()
	s.Kill()
	if _, err := rlock.Dial(context.Background(), opt, rlock.Config{}); err == nil {
		t.Error("Dial without a server succeeded")
	}
}

// A key of another type under the name gives Redis's WRONGTYPE, none of our
// sentinels, and stays as it is.
func TestKeyOfAnotherType(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 10*time.Second)
		m := rlock.New(ses, "taken")
		must(t, s.Do(t, "SET", "taken", "a string").Error())
		_, _, lock := m.Lock(ctx)
		_, _, try := m.TryLock(ctx)
		_, _, named := m.Lock(rlock.WithOwner(ctx, "me"))
		_, state := m.State(ctx)
		_, force := m.ForceUnlock(ctx)
		must(t, s.Do(t, "SET", "redisson_lock_token:{fenced}", "not a number").Error())
		_, _, fenced := rlock.New(ses, "fenced", rlock.Fenced()).Lock(ctx)
		for op, err := range map[string]error{"Lock": lock, "TryLock": try, "WithOwner": named, "State": state, "ForceUnlock": force, "Fenced": fenced} {
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s: got %v, want WRONGTYPE", op, err)
			}
			for _, e := range sentinels {
				if errors.Is(err, e) {
					t.Errorf("%s: %v matches %v", op, err, e)
				}
			}
		}
		if got := locktest.Describe(t, s); got != "redisson_lock_token:{fenced}=not a number taken=a string" {
			t.Errorf("Redis has %q", got)
		}
	})
}
