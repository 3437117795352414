package multilock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/multilock"
	"relock/rlock"
)

func TestMain(m *testing.M) {
	redistest.Main(m, "lua", "../rlock/lua", "../internal/redis/lua")
}

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
	is     = locktest.Is
	ends   = locktest.Ends
)

// slow is a Config in which nothing happens by the clock within a test.
func slow() rlock.Config { return rlock.Config{Lease: time.Hour, PollFloor: time.Hour} }

// taken is the outcome of a Lock in a goroutine.
type taken struct {
	section context.Context
	h       *multilock.Hold
	err     error
}

func start(ctx context.Context, m *multilock.Mutex, opts ...rlock.LockOption) <-chan taken {
	c := make(chan taken, 1)
	go func() {
		section, h, err := m.Lock(ctx, opts...)
		c <- taken{section, h, err}
	}()
	return c
}

// free checks that each of the locks can be had.
func free(t testing.TB, ctx context.Context, locks ...multilock.Part) {
	t.Helper()
	for _, l := range locks {
		_, h, err := l.Lock(ctx, rlock.Wait(0))
		if err != nil {
			t.Fatalf("%s is not free: %v", l.Name(), err)
		}
		must(t, h.Unlock())
	}
}

// held checks that none of the locks can be had.
func held(t testing.TB, ctx context.Context, locks ...multilock.Part) {
	t.Helper()
	for _, l := range locks {
		_, _, err := l.Lock(ctx, rlock.Wait(0))
		is(t, l.Name(), err, rlock.ErrNotAcquired)
	}
}

// asked is the names that a session has asked Redis for, in their order.
type asked struct {
	mu    sync.Mutex
	names []string
}

func (a *asked) trace() *rlock.Trace {
	return &rlock.Trace{Attempt: func(e locktrace.Attempt) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.names = append(a.names, e.Name)
	}}
}

func (a *asked) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Clone(a.names)
	a.names = nil
	return all
}
