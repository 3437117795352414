package topology_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A stuckSocket is a connection of DialCtxFn that blocks in Close, once a script has gone over it. It is a
// socket, so that a session may make it the direct connection.
type stuckSocket struct {
	*net.TCPConn
	scripts *atomic.Pointer[stuckSocket] // the one that has sent a script last
	letGo   <-chan struct{}
}

func (c *stuckSocket) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("EVALSHA")) {
		c.scripts.Store(c)
	}
	return c.TCPConn.Write(p)
}

func (c *stuckSocket) Close() error {
	err := c.TCPConn.Close()
	if c.scripts.Load() == c {
		<-c.letGo
	}
	return err
}

// The direct connection breaks, and its Close, which is code of the caller's, blocks: the call that was
// under way goes on over the other connection, and so do those behind it.
func TestADirectConnectionThatDoesNotCloseHoldsUpNoCall(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	p, letGo := faulttest.New(t, s.Addr), make(chan struct{})
	var scripts atomic.Pointer[stuckSocket]
	opt := s.Option()
	opt.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", p.Addr())
		if err != nil {
			return nil, err
		}
		return &stuckSocket{conn.(*net.TCPConn), &scripts, letGo}, nil
	}
	ses, err := rlock.Dial(within(t, locktest.Patience), opt, rlock.Config{})
	must(t, err)
	t.Cleanup(func() { close(letGo); _ = ses.Close() })
	m := rlock.New(ses, "x")
	must(t, m.Do(within(t, time.Minute), func(context.Context) error { return nil })) // the server knows the scripts
	seen, _ := p.HoldReply(locktest.Calls(t, "acquire"))
	ended := locktest.GoLock(m, within(t, time.Minute))
	locktest.Get(t, seen, 10*time.Second, "the attempt")
	p.Cut()
	got := locktest.Get(t, ended, 10*time.Second, "Lock")
	must(t, got.Err)
	unlocked := locktest.Go(got.Hold.Unlock)
	must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
}
