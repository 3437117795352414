package semaphore_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/idgen"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		child(addr) // does not return
	}
	redistest.Main(m, "lua", "../internal/redis/lua")
}

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
	is     = locktest.Is
)

var src = semaphore.ScriptSources()

// slow is a session that does nothing by the clock within a test: what wakes it up are
// messages.
func slow() rlock.Config { return rlock.Config{Lease: time.Hour, PollFloor: time.Hour} }

// got is the outcome of an Acquire in a goroutine.
type got struct {
	section context.Context
	p       *semaphore.Permits
	err     error
}

func acquire(ctx context.Context, m *semaphore.Semaphore, n int, opts ...rlock.LockOption) <-chan got {
	c := make(chan got, 1)
	go func() {
		section, p, err := m.Acquire(ctx, n, opts...)
		c <- got{section, p, err}
	}()
	return c
}

func start(fn func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- fn() }()
	return c
}

// value returns what stands under a key, "" for nothing.
func value(t testing.TB, s *redistest.Server, key string) string {
	t.Helper()
	v, err := s.Do(t, "GET", key).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("GET: %v", err)
	}
	return v
}

// taken returns how many permits stand in the sorted set of a semaphore.
func taken(t testing.TB, s *redistest.Server, name string) int64 {
	t.Helper()
	n, err := s.Do(t, "ZCARD", zset(name)).AsInt64()
	must(t, err)
	return n
}

// raw returns the ids of permits as they stand in Redis.
func raw(p *semaphore.Permits) []string { return idgen.AppendPermits(nil, p.Owner(), p.N()) }

func zset(name string) string    { return "{" + name + "}:timeout" }
func channel(name string) string { return "redisson_sc:{" + name + "}" }

// available checks how many permits are free.
func available(t testing.TB, ctx context.Context, m interface {
	Available(context.Context) (int, error)
}, want int) {
	t.Helper()
	n, err := m.Available(ctx)
	must(t, err)
	if n != want {
		t.Errorf("%d available, want %d", n, want)
	}
}

// waits checks that a channel has nothing yet.
func waits[T any](t testing.TB, what string, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%s does not wait: %v", what, v)
	default:
	}
}
