// Package proxy is a network that can be made bad: delays, losses, cuts of one direction,
// resets, and bytes that arrive long after their sender has given up. It knows nothing of what
// it carries.
//
// A client says in the first line of a connection where it wants to go ([Dialer]); so one
// proxy stands for all servers of a topology.
package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Rule is what the network does to what is sent from now on.
type Rule struct {
	Up, Down       time.Duration // delay towards the server and towards the client
	CutUp, CutDown bool          // what is sent in this direction is lost
	Refuse         bool          // new connections end at once
}

// Proxy is the network between one client process and all servers.
type Proxy struct {
	listener net.Listener
	wg       sync.WaitGroup
	taken    atomic.Int64 // bytes that are lost or on their way

	mu    sync.Mutex
	rule  Rule
	conns map[*conn]struct{}
}

// Listen starts a proxy on a free port of 127.0.0.1.
func Listen() (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, conns: map[*conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends all connections, and returns when nothing of the proxy is left.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	for _, c := range p.all() {
		c.abort()
	}
	p.wg.Wait()
}

// Set changes the rule. Connections that have lost something end when the rule no longer cuts
// them: what would come next would not fit what came before.
func (p *Proxy) Set(r Rule) {
	p.mu.Lock()
	p.rule = r
	p.mu.Unlock()
	if r.CutUp || r.CutDown {
		return
	}
	for _, c := range p.all() {
		if c.torn.Load() {
			c.abort()
		}
	}
}

// Reset ends all connections at once. What was on its way is lost.
func (p *Proxy) Reset() {
	for _, c := range p.all() {
		c.abort()
	}
}

// Forsake ends the clients' side of all connections. What they have sent is delivered all the
// same, with the delay that it had when it was sent.
func (p *Proxy) Forsake() {
	for _, c := range p.all() {
		c.forsake()
	}
}

func (p *Proxy) current() Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rule
}

func (p *Proxy) all() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve carries one connection until it ends.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	if p.current().Refuse {
		return
	}
	_ = client.SetReadDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(client)
	addr, err := in.ReadString('\n')
	if err != nil {
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	server, err := net.DialTimeout("tcp", strings.TrimSpace(addr), 5*time.Second)
	if err != nil {
		return
	}
	c := newConn(p, client, in, server)
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	c.run()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// Dialer returns a rueidis DialCtxFn that goes through the proxy at addr.
func Dialer(addr string) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(c, to+"\n"); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
}
