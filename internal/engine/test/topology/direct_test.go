package topology_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The tests of this file are about the connection for the one who is alone.

// dialled are the connections that a session has made, by their own addresses: that of its
// client, that of its subscriptions, and from the third on the direct ones.
type dialled struct {
	mu    sync.Mutex
	addrs []string
}

func (d *dialled) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.addrs)
}

func (d *dialled) last() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addrs[len(d.addrs)-1]
}

func (d *dialled) option(s *redistest.Server) rueidis.ClientOption {
	opt := s.Option()
	opt.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.addrs = append(d.addrs, c.LocalAddr().String())
		}
		return c, err
	}
	return opt
}

// ran reports whether the last command that came over a connection was a script.
func ran(t *testing.T, s *redistest.Server, addr string) bool {
	t.Helper()
	list, err := s.Do(t, "CLIENT", "LIST").ToString()
	must(t, err)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " addr="+addr+" ") {
			return strings.Contains(line, " cmd=evalsha ")
		}
	}
	return false
}

// A connection that died while idle costs one dial, no error, and no claim its trust. It ends
// with the session.
func TestDirectConnectionMayDieWhileIdle(t *testing.T) {
	s := redistest.Real(t)
	var d dialled
	var p locktest.Passes
	ses, err := rlock.Dial(t.Context(), d.option(s), rlock.Config{Trace: p.Trace()})
	must(t, err)
	t.Cleanup(func() { ses.Close() })
	st := &locktest.Stage{T: t, Server: s, Session: ses, Ctx: within(t, 60*time.Second), Name: redistest.Name(t)}
	st.Mutex = rlock.New(ses, st.Name)
	other := rlock.New(ses, st.Name+"-other")

	locktest.LockOnce(t, other)
	if n := d.count(); n != 3 || !ran(t, s, d.last()) {
		t.Fatalf("%d connections; a Lock alone did not go over the third", n)
	}
	_, h := st.Lock(st.Ctx)
	waiter := st.Queue(st.Ctx)
	must(t, s.Do(t, "CLIENT", "KILL", "ADDR", d.last()).Error())
	locktest.LockOnce(t, other)
	redistest.Eventually(t, 10*time.Second, "a new connection that is used", func() bool {
		locktest.LockOnce(t, other)
		return d.count() > 3 && ran(t, s, d.last())
	})
	must(t, h.Unlock())
	got := st.In(waiter)
	if p.Count() != 1 {
		t.Error("the claim was in doubt: it was not handed over in memory")
	}
	must(t, got.Hold.Unlock())
	if n := d.count(); n != 4 {
		t.Errorf("%d connections, want 4", n)
	}
	if losses := p.Losses(); len(losses) > 0 {
		t.Error(losses)
	}
	must(t, ses.Close())
	redistest.Eventually(t, 5*time.Second, "the connection to end", func() bool { return !ran(t, s, d.last()) })
}

// A context that ends ends the call at once, however long Redis takes, and what may have been
// acquired is released behind it, though over the other connection.
func TestDirectCallEndsWithItsContext(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		for _, request := range []bool{true, false} {
			locktest.LockOnce(t, st.Mutex)
			hold := st.Proxy.HoldReply
			if request {
				hold = st.Proxy.HoldRequest
			}
			seen, release := hold(locktest.Calls(t, "acquire"))
			ctx, cancel := context.WithCancel(st.Ctx)
			locked := locktest.GoLock(st.Mutex, ctx)
			st.Reached(seen)
			began := time.Now()
			cancel()
			got := locktest.Get(t, locked, 10*time.Second, "the Lock to end")
			if !errors.Is(got.Err, context.Canceled) {
				t.Fatalf("Lock returned %v", got.Err)
			}
			if d := time.Since(began); d > 300*time.Millisecond+s.Slack() {
				t.Errorf("Lock ended %v after its context", d)
			}
			release()
			redistest.Eventually(t, 10*time.Second, "the release", func() bool { return locktest.CallsSent(t, st.Proxy, "release") > 0 })
			redistest.Eventually(t, 5*time.Second, "the lock to be free", func() bool { return locktest.Free(t, s, st.Name) })
			locktest.LockOnce(t, st.Mutex) // and nothing comes later
			st.Proxy.Reset()
		}
	})
}

// Close while a call is under way releases behind it too.
func TestDirectCallUnderCloseIsReleasedBehind(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		seen, release := st.Proxy.HoldRequest(locktest.Calls(t, "acquire"))
		locked := locktest.GoLock(st.Mutex, st.Ctx)
		st.Reached(seen)
		closed := locktest.Go(st.Session.Close)
		if got := locktest.Get(t, locked, 10*time.Second, "the Lock to end"); !errors.Is(got.Err, rlock.ErrClosed) {
			t.Fatalf("Lock returned %v", got.Err)
		}
		release()
		must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
		if !locktest.Free(t, s, st.Name) {
			t.Error("the lock stands")
		}
	})
}

// A second connection that leads to another server, as behind an address that moves, is not used: also where an operator
// watches that server, whose subscription by a pattern receives what the session publishes there.
func TestDirectConnectionToAnotherServerIsNotUsed(t *testing.T) {
	s, other := redistest.Real(t), redistest.Real(t)
	locktest.Watches(t, other)
	var dials atomic.Int32
	opt := s.Option()
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if dials.Add(1) > 2 { // the session's client, its subscriptions, and then the direct one
			addr = other.Addr
		}
		return d.DialContext(ctx, "tcp", addr)
	}
	ses, err := rlock.Dial(t.Context(), opt, rlock.Config{})
	must(t, err)
	t.Cleanup(func() { ses.Close() })
	_, h, err := rlock.New(ses, "x").Lock(t.Context())
	must(t, err)
	if locktest.Free(t, s, "x") || !locktest.Free(t, other, "x") {
		t.Error("the lock stands on the wrong server")
	}
	must(t, h.Unlock())
	if sent := other.Commands(t); sent["pubsub|numsub"]+sent["pubsub"] == 0 { // before Redis 7.0 without the subcommand
		t.Error("nothing was sent to the other server; the test shows nothing")
	}
}
