package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A misfit is TLS that cannot work: the client knows the authority of the server, which is at s.Addr without
// TLS, until set is called.
type misfit struct {
	mutual bool // the server asks for a certificate
	set    func(t *testing.T, x *secured, s *redistest.Server)
	err    error
	text   string
}

// short is enough for what answers at once, also on a busy machine. A redis-server that is greeted in TLS waits for the end of the line.
const short = 300 * time.Millisecond

var misfits = map[string]misfit{
	"another authority": {false, func(t *testing.T, x *secured, _ *redistest.Server) {
		x.opt.TLSConfig.RootCAs = redistest.NewAuthority(t).Client().RootCAs
	}, rlock.ErrUnavailable, "certificate signed by unknown authority"},
	"another name": {false, func(_ *testing.T, x *secured, _ *redistest.Server) {
		x.opt.TLSConfig.ServerName = "other"
	}, rlock.ErrUnavailable, "certificate is valid for localhost, not other"},
	"no certificate": {true, func(*testing.T, *secured, *redistest.Server) {},
		rlock.ErrUnavailable, "asks for a certificate of the client, and ClientOption.TLSConfig has none"},
	"the certificate of another authority": {true, func(t *testing.T, x *secured, _ *redistest.Server) {
		x.opt.TLSConfig.Certificates = []tls.Certificate{redistest.NewAuthority(t).Certificate(t)}
	}, rlock.ErrUnavailable, ""}, // with TLS 1.3 what the server says may be lost
	"plain client": {false, func(_ *testing.T, x *secured, _ *redistest.Server) {
		x.opt.TLSConfig = nil
	}, rlock.ErrConfig, "speaks TLS only; set ClientOption.TLSConfig"},
	"plain client without a certificate": {true, func(_ *testing.T, x *secured, _ *redistest.Server) {
		x.opt.TLSConfig = nil
	}, rlock.ErrConfig, "speaks TLS only; set ClientOption.TLSConfig"},
	"plain server": {false, func(_ *testing.T, x *secured, s *redistest.Server) {
		x.opt.InitAddress, x.opt.Dialer.Timeout = []string{s.Addr}, short
	}, rlock.ErrConfig, "does not speak TLS; leave ClientOption.TLSConfig out"},
	"plain Sentinel, with TLS": {false, func(_ *testing.T, x *secured, s *redistest.Server) {
		x.opt.InitAddress, x.opt.ForceSingleClient = []string{s.Addr}, false
		x.opt.Sentinel.MasterSet, x.opt.Sentinel.TLSConfig, x.opt.Sentinel.Dialer.Timeout = "x", x.opt.TLSConfig, short
	}, rlock.ErrConfig, "does not speak TLS; leave ClientOption.Sentinel.TLSConfig out"},
	"plain Sentinel that knows no primary": {false, func(_ *testing.T, x *secured, s *redistest.Server) {
		x.opt.InitAddress, x.opt.ForceSingleClient, x.opt.Sentinel.MasterSet = []string{s.Addr}, false, "x"
	}, rlock.ErrConfig, "the server refuses what ClientOption asks for: unknown command"},
}

// TLS that cannot work is found by Dial, whose error says what is wrong.
func TestTLSDialSaysWhatIsWrong(t *testing.T) {
	rlock.AskForTLS(t, 30*time.Second) // a handshake takes its time on a busy machine
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		if !s.IsMini() {
			redistest.SkipShort(t) // it lets time pass
		}
		for name, m := range misfits {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				if !m.mutual && version == tls.VersionTLS12 {
					continue // there is no difference
				}
				a := redistest.NewAuthority(t)
				x := secure(s, s.ServeTLS(t, redistest.TLS{Authority: a, Clients: m.mutual, Version: version}), a.Client())
				m.set(t, x, s)
				_, err := rlock.Dial(within(t, 20*time.Second), x.opt, rlock.Config{})
				if !errors.Is(err, m.err) || !strings.Contains(err.Error(), m.text) {
					t.Errorf("%s, %s: %v", name, tls.VersionName(version), err)
				}
			}
		}
	})
}

// Both sides show certificates. The name that the server's has to be for is that of the address, unless
// TLSConfig has another one.
func TestTLSDialWithCertificates(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, host := range []string{"127.0.0.1", "localhost", "redis.test"} {
			a := redistest.NewAuthority(t)
			addr := s.ServeTLS(t, redistest.TLS{Authority: a, Hosts: []string{host}, Clients: true})
			x := secure(s, addr, a.Client(a.Certificate(t)))
			switch host {
			case "localhost":
				x.opt.InitAddress[0] = strings.ReplaceAll(addr, "127.0.0.1", host)
			case "redis.test":
				x.opt.TLSConfig.ServerName = host
			}
			m := rlock.New(x.dial(t, rlock.Config{}), redistest.Name(t))
			locktest.LockOnce(t, m)
			locktest.LockOnce(t, m)
			if n := x.shakes.Load(); n != 3 {
				t.Errorf("%s: %d connections, want 3 with the direct one", host, n)
			}
		}
	})
}

// DisableTCPNoDelay counts with TLS too.
func TestTLSDialDelays(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	a := redistest.NewAuthority(t)
	cfg := a.Client()
	for _, delays := range []bool{false, true} {
		x := secure(s, s.ServeTLS(t, redistest.TLS{Authority: a}), cfg)
		x.opt.DisableTCPNoDelay = delays
		dialled := make(chan *tls.Conn, 10)
		x.opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
			c, err := (&tls.Dialer{NetDialer: d, Config: tc}).DialContext(ctx, "tcp", addr)
			if err == nil {
				dialled <- c.(*tls.Conn)
			}
			return c, err
		}
		x.dial(t, rlock.Config{})
		raw, err := (<-dialled).NetConn().(*net.TCPConn).SyscallConn()
		must(t, err)
		must(t, raw.Control(func(fd uintptr) {
			if n, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY); err != nil || (n == 0) != delays {
				t.Errorf("DisableTCPNoDelay %v: TCP_NODELAY is %d, %v", delays, n, err)
			}
		}))
	}
}

// Servers that accept and say nothing are asked at once why Dial has failed: many keep it no longer than one.
func TestDialAsksAllServersAtOnce(t *testing.T) {
	rlock.AskForTLS(t, time.Minute)
	opt := redistest.Mini(t).Option()
	opt.InitAddress = nil
	asked, silence := make(chan string, 10), make(chan struct{})
	for range 3 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer ln.Close()
		opt.InitAddress = append(opt.InitAddress, ln.Addr().String())
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					first := make([]byte, len("*1\r\n$4\r\nPING\r\n"))
					if _, _ = io.ReadFull(c, first); string(first) == "*1\r\n$4\r\nPING\r\n" {
						asked <- ln.Addr().String()
					}
					<-silence
				}()
			}
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	dialled := locktest.Go(func() error { _, err := rlock.Dial(ctx, opt, rlock.Config{}); return err })
	seen := map[string]bool{}
	for len(seen) < len(opt.InitAddress) {
		seen[locktest.Get(t, asked, 10*time.Second, "a server to be asked")] = true
	}
	close(silence)
	locktest.Is(t, "Dial", locktest.Get(t, dialled, 10*time.Second, "Dial"), rlock.ErrUnavailable)
}

// A server that says nothing to a PING is not asked for TLS besides: a Dial whose ctx has ended waited for both, a second.
func TestDialAsksASilentServerOnce(t *testing.T) {
	rlock.AskForTLS(t, 50*time.Millisecond)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	asked := make(chan byte, 10) // what each connection began with
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				first := make([]byte, 1)
				if _, err := io.ReadFull(c, first); err == nil {
					asked <- first[0]
					end()
				}
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	opt := redistest.Mini(t).Option()
	opt.InitAddress = []string{ln.Addr().String()}
	_, err = rlock.Dial(ctx, opt, rlock.Config{})
	locktest.Is(t, "Dial", err, context.Canceled, rlock.ErrUnavailable)
	must(t, ln.Close())
	all.Wait() // the client has given its connections up
	close(asked)
	for first := range asked {
		if first != '*' {
			t.Errorf("a connection began with %q, which is no command", first)
		}
	}
}
