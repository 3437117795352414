package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rlock/lua"
)

// The tests of this and the other fault_*_test.go files break the network, the server
// or the key under a lock, and look at what the callers are told and at what is left in
// Redis. Each runs on both kinds of server.

// faultEach runs a test on both kinds of server, beside other fault tests: they mostly
// wait.
var faultEach = redistest.EachParallel

// faultDial makes a session whose traffic goes through a proxy. The proxy is healed
// before the session is closed at the end of the test; how that Close ends is not
// looked at.
func faultDial(t *testing.T, s *redistest.Server, cfg rlock.Config) (*rlock.Session, *faulttest.Proxy) {
	t.Helper()
	p, _ := faulttest.Of(t, s.Option())
	return faultDialVia(t, s, p, cfg), p
}

func faultDialVia(t *testing.T, s *redistest.Server, p *faulttest.Proxy, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(context.Background(), faultOption(s, p), cfg)
	must(t, err)
	t.Cleanup(func() {
		p.BlackHole(false)
		p.Refuse(false)
		_ = ses.Close()
	})
	p.Reset() // of what the session has sent to begin
	return ses
}

func faultOption(s *redistest.Server, p *faulttest.Proxy) rueidis.ClientOption {
	return p.Option(s.Option())
}

// faultSources are the scripts in lua/ as they are sent: with what they include.
var faultSources = func() map[string]string {
	src := map[string]string{}
	for _, name := range []string{"acquire", "release", "extend", "leave", "renew", "state", "force_unlock"} {
		src[name] = script.Load(lua.Files, name+".lua").Source()
	}
	return src
}()

// faultRuns returns a matcher for the calls of a script.
func faultRuns(t *testing.T, name string) func(cmd []string) bool {
	t.Helper()
	src := faultSources[name]
	if src == "" {
		t.Fatalf("no script lua/%s.lua", name)
	}
	return locktest.Runs(src)
}

// faultSent returns how many calls of a script the proxy has forwarded by EVALSHA.
func faultSent(t *testing.T, p *faulttest.Proxy, name string) int {
	t.Helper()
	match, n := faultRuns(t, name), 0
	for _, line := range p.Log() {
		if match(strings.SplitN(line, " ", 3)) {
			n++
		}
	}
	return n
}

// faultCount returns what Redis counts for an owner: "" for nothing.
func faultCount(t *testing.T, s *redistest.Server, name, owner string) string {
	t.Helper()
	n, err := s.Do(t, "HGET", name, owner).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("HGET: %v", err)
	}
	return n
}

// faultOwners returns how many owners stand in the lock.
func faultOwners(t *testing.T, s *redistest.Server, name string) int64 {
	t.Helper()
	n, err := s.Do(t, "HLEN", name).AsInt64()
	must(t, err)
	return n
}

func faultFree(t *testing.T, s *redistest.Server, name string) bool {
	t.Helper()
	return faultOwners(t, s, name) == 0
}

// faultStays watches a critical section for a while, in which it must not end.
func faultStays(t *testing.T, section context.Context, d time.Duration) {
	t.Helper()
	select {
	case <-section.Done():
		t.Fatalf("the section's context ended: %v", context.Cause(section))
	case <-time.After(d):
	}
}

// faultNoSentinel checks that err is an error, but says none of what the package's own
// errors say.
func faultNoSentinel(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", what)
	}
	for _, s := range []error{
		rlock.ErrNotAcquired, rlock.ErrNotHeld, rlock.ErrLost, rlock.ErrReleased,
		rlock.ErrClosed, rlock.ErrName, rlock.ErrConfig, rlock.ErrArgument,
	} {
		if errors.Is(err, s) {
			t.Fatalf("%s: %v; it must not match %v", what, err, s)
		}
	}
}

// faultLocked is the outcome of a Lock in a goroutine.
type faultLocked struct {
	ctx  context.Context
	hold *rlock.Hold
	err  error
	at   time.Time
}

// lockable is a lock of any kind.
type lockable interface {
	TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

func faultGoLock(m lockable, ctx context.Context, opts ...rlock.LockOption) <-chan faultLocked {
	c := make(chan faultLocked, 1)
	go func() {
		section, h, err := m.Lock(ctx, opts...)
		c <- faultLocked{section, h, err, time.Now()}
	}()
	return c
}

func faultGo(fn func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- fn() }()
	return c
}

// faultFailed returns a Trace that tells of each attempt that ended with an error.
func faultFailed() (*rlock.Trace, <-chan struct{}) {
	c := make(chan struct{}, 10000)
	return &rlock.Trace{Attempt: func(e locktrace.Attempt) {
		if e.Err != nil {
			c <- struct{}{}
		}
	}}, c
}
