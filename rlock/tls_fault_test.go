package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A context ends a call at once while nothing comes over TLS, and what may have been acquired is released behind
// it.
func TestTLSCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	x, p := secureProxied(t, s)
	x.opt.ConnWriteTimeout = time.Minute // else that would end the call too
	name, ctx := redistest.Name(t), within(t, time.Minute)
	m := rlock.New(x.dial(t, rlock.Config{}), name)
	for _, request := range []bool{true, false} {
		locktest.LockOnce(t, m)
		p.Reset()
		hold := p.HoldReply
		if request {
			hold = p.HoldRequest
		}
		seen, release := hold(locktest.Calls(t, "acquire"))
		ctx, cancel := context.WithCancel(ctx)
		locked := locktest.GoLock(m, ctx)
		locktest.Get(t, seen, 10*time.Second, "the command")
		cancel()
		if got := locktest.Get(t, locked, 10*time.Second, "the Lock to end"); !errors.Is(got.Err, context.Canceled) {
			t.Fatalf("Lock returned %v", got.Err)
		}
		release()
		redistest.Eventually(t, 10*time.Second, "the release", func() bool { return locktest.CallsSent(t, p, "release") > 0 })
		redistest.Eventually(t, 10*time.Second, "the lock to be free", func() bool { return locktest.Free(t, s, name) })
		locktest.LockOnce(t, m) // and nothing comes later
	}
}

// A server accepts connections and never answers the handshake: Dial ends with its context. If only the direct
// connection's handshake gets no answer, the session works without one, and Close does not wait for it.
func TestTLSHandshakeWithoutAnAnswer(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	s, a := redistest.Mini(t), redistest.NewAuthority(t)
	const limit = time.Minute // without an end of its own the handshake would take as long
	x := secure(s, silent.Addr().String(), a.Client())
	x.opt.Dialer.Timeout = limit
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	dialled := locktest.Go(func() error { _, err := rlock.Dial(ctx, x.opt, rlock.Config{}); return err })
	err = locktest.Get(t, dialled, limit/2, "Dial")
	locktest.Is(t, "Dial", err, rlock.ErrUnavailable)
	locktest.Is(t, "Dial", err, context.DeadlineExceeded)

	x = secure(s, s.ServeTLS(t, redistest.TLS{Authority: a}), a.Client())
	x.opt.Dialer.Timeout = limit
	ended := make(chan error, 1)
	x.opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		direct := x.shakes.Load() == 2
		if direct {
			addr = silent.Addr().String()
		}
		conn, err := (&tls.Dialer{NetDialer: d, Config: tc}).DialContext(ctx, "tcp", addr)
		if direct {
			ended <- err
		}
		return conn, err
	}
	ses := x.dial(t, rlock.Config{})
	locktest.LockOnce(t, rlock.New(ses, redistest.Name(t)))
	must(t, locktest.Get(t, locktest.Go(ses.Close), limit/2, "Close"))
	locktest.Is(t, "the handshake", locktest.Get(t, ended, limit/2, "the end of the handshake"), context.Canceled)
}

// A waiter is woken by a message over TLS, also over a connection that was made anew.
func TestTLSWaiterIsWoken(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	x, p := secureProxied(t, s)
	name := redistest.Name(t)
	holder, waiter := rlock.New(dial(t, s, locktest.Slow()), name), rlock.New(x.dial(t, locktest.Slow()), name)
	ctx := within(t, time.Minute)
	subscribed := func() (at string) { // by which connection
		list, err := s.Do(t, "CLIENT", "LIST", "TYPE", "pubsub").ToString()
		must(t, err)
		for line := range strings.Lines(list) {
			if strings.Contains(line, " sub=2 ") { // the session's own channel and the lock's
				_, at, _ = strings.Cut(line, " addr=")
				at, _, _ = strings.Cut(at, " ")
			}
		}
		return at
	}
	var last string
	for _, cut := range []bool{false, true} {
		_, h, err := holder.Lock(ctx)
		must(t, err)
		w := locktest.BeginLock(ctx, waiter)
		redistest.Eventually(t, locktest.Patience, "the subscription", func() bool { last = subscribed(); return last != "" })
		if cut {
			p.Cut()
			redistest.Eventually(t, locktest.Patience, "a new subscription", func() bool { at := subscribed(); return at != "" && at != last })
		}
		w.Waits(t)
		must(t, h.Unlock())
		w.Granted(t, locktest.Patience)
		must(t, w.Hold.Unlock())
	}
}

// A Cluster that speaks TLS also among its nodes tells its clients the ports for that.
func TestTLSCluster(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	s := redistest.Real(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
	a := redistest.NewAuthority(t)
	addr := s.ServeTLS(t, redistest.TLS{Authority: a})
	_, port, _ := net.SplitHostPort(addr)
	must(t, s.Do(t, "CONFIG", "SET", "tls-cluster", "yes").Error())
	must(t, s.Do(t, "CONFIG", "SET", "cluster-announce-tls-port", port).Error())
	must(t, s.Do(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383").Error())
	redistest.Eventually(t, locktest.Patience, "the cluster to be up", func() bool {
		info, err := s.Do(t, "CLUSTER", "INFO").ToString()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	x := secure(s, addr, a.Client())
	x.opt.ForceSingleClient = false
	ctx, name := within(t, time.Minute), redistest.Name(t)
	holder, waiter := rlock.New(x.dial(t, locktest.Slow()), name), rlock.New(x.dial(t, locktest.Slow()), name)
	_, h, err := holder.Lock(ctx)
	must(t, err)
	w := locktest.BeginLock(ctx, waiter)
	redistest.Eventually(t, locktest.Patience, "the subscription", func() bool {
		channels, err := s.Do(t, "PUBSUB", "SHARDCHANNELS").AsStrSlice()
		must(t, err)
		return slices.Contains(channels, locktest.Channel(name))
	})
	must(t, h.Unlock())
	w.Granted(t, locktest.Patience)
	must(t, w.Hold.Unlock())
	list, err := s.Do(t, "CLIENT", "LIST").ToString()
	must(t, err)
	if strings.Count(list, " laddr="+addr+" ") != strings.Count(list, " laddr=")-1 {
		t.Errorf("more than this test's own connection does without TLS:\n%s", list)
	}
}
