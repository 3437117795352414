package demo

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// A Wire is the network of one or more sessions. It counts the commands that they
// send: everything that goes to Redis on their connections, which is scripts,
// SUBSCRIBE, UNSUBSCRIBE and the pings that keep connections alive. Commands that a
// script runs inside Redis are not counted, nor is what goes over other clients'
// connections. And it can be cut: then nothing goes through, and nobody is told, as
// when a cable is pulled.
type Wire struct {
	commands atomic.Int64

	mu   sync.Mutex
	gone chan struct{} // closed when the network is back; nil while it works
}

// Commands returns how many commands were sent so far.
func (w *Wire) Commands() int64 { return w.commands.Load() }

// Through returns opt with its connections going over this wire.
func (w *Wire) Through(opt rueidis.ClientOption) rueidis.ClientOption {
	dial := opt.DialCtxFn
	if dial == nil {
		dial = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
			if tc != nil {
				return (&tls.Dialer{NetDialer: d, Config: tc}).DialContext(ctx, "tcp", addr)
			}
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		c, err := dial(ctx, addr, d, tc)
		if err != nil {
			return nil, err
		}
		return &wiredConn{Conn: c, wire: w, closed: make(chan struct{})}, nil
	}
	return opt
}

// Cut stops all traffic.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone == nil {
		w.gone = make(chan struct{})
	}
}

// Mend lets it go on: what was held back arrives now, late, as with TCP.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone != nil {
		close(w.gone)
		w.gone = nil
	}
}

// wiredConn is one connection.
type wiredConn struct {
	net.Conn
	wire   *Wire
	parser respParser // of what is written

	closing sync.Once
	closed  chan struct{}
}

func (c *wiredConn) Write(p []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	c.wire.commands.Add(int64(c.parser.commands(p)))
	return c.Conn.Write(p)
}

func (c *wiredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if gone := c.pass(); gone != nil {
		return 0, gone
	}
	return n, err
}

func (c *wiredConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// pass waits while the wire is cut.
func (c *wiredConn) pass() error {
	c.wire.mu.Lock()
	gone := c.wire.gone
	c.wire.mu.Unlock()
	if gone == nil {
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

// respParser counts the commands in a stream. Each is "*<n>\r\n" and then n times
// "$<length>\r\n<bytes>\r\n"; writes may end anywhere in it.
type respParser struct {
	line []byte // begun, but not ended
	skip int    // bytes still to come that are not a line
}

// commands returns how many commands begin in p, which continues the stream.
func (r *respParser) commands(p []byte) (n int) {
	for len(p) > 0 {
		if r.skip > 0 {
			k := min(r.skip, len(p))
			r.skip -= k
			p = p[k:]
			continue
		}
		rest, after, ended := bytes.Cut(p, []byte("\n"))
		r.line = append(r.line, rest...)
		if !ended {
			return n
		}
		p = after
		if bytes.HasPrefix(r.line, []byte("*")) {
			n++
		} else if text, ok := bytes.CutPrefix(r.line, []byte("$")); ok {
			length, _ := strconv.Atoi(string(bytes.TrimSpace(text)))
			r.skip = length + len("\r\n")
		}
		r.line = r.line[:0]
	}
	return n
}
