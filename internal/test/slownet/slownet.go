// Package slownet is a network that takes its time: a proxy in front of a server which delivers
// what passes, in either direction, a fixed time after it has come. The bytes of a connection stay
// in order, and as many as come are on their way at a time.
//
// What it guarantees: nothing arrives before its time. What it does not: it may arrive later, by
// some tens of microseconds on an idle machine, and a client or a server that does not read holds
// up everybody. A time through the proxy is to be compared with others through the same proxy.
package slownet

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Proxy stands in front of one server. Its methods are safe for concurrent use.
type Proxy struct {
	target string
	delay  time.Duration
	ln     net.Listener
	wg     sync.WaitGroup
	dead   chan struct{} // closed by close
	wake   chan struct{} // of size 1: there is something on the way

	mu    sync.Mutex // guards what follows
	conns map[net.Conn]struct{}
	// The delay is the same for all bytes, so those of all connections are one queue in the order
	// of time.
	way []parcel
}

// A parcel is bytes on their way, or the end of a stream.
type parcel struct {
	due   time.Time
	to    *net.TCPConn
	bytes []byte
	end   chan struct{} // closed when the end has arrived; nil for bytes
}

// New starts a proxy for the server at the address target, through which a round trip takes that
// long. It is closed when the test ends.
func New(tb testing.TB, target string, roundTrip time.Duration) *Proxy {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{
		target: target, delay: roundTrip / 2, ln: ln, conns: map[net.Conn]struct{}{},
		dead: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	p.wg.Go(p.accept)
	p.wg.Go(p.deliver)
	tb.Cleanup(p.close)
	return p
}

// Addr returns the address to connect to in place of the server's.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// close cuts all connections and returns when nothing of the proxy is left.
func (p *Proxy) close() {
	p.mu.Lock()
	close(p.dead)
	_ = p.ln.Close()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve passes on what both ends send, until both have ended.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(client, server) {
		return
	}
	defer p.forget(client, server)
	var wg sync.WaitGroup
	wg.Go(func() { p.pass(client, server) })
	wg.Go(func() { p.pass(server, client) })
	wg.Wait()
}

// keep notes connections for close. It returns false when that has been called.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.dead:
		return false
	default:
	}
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return true
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// pass passes on what one end sends. It returns when the end of that has arrived.
func (p *Proxy) pass(from, to net.Conn) {
	tcp := to.(*net.TCPConn)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.send(parcel{to: tcp, bytes: slices.Clone(buffer[:n])})
		}
		if err != nil {
			break
		}
	}
	end := make(chan struct{})
	p.send(parcel{to: tcp, end: end})
	select {
	case <-end:
	case <-p.dead:
	}
}

// send puts something on its way.
func (p *Proxy) send(c parcel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.due = time.Now().Add(p.delay)
	p.way = append(p.way, c)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// deliver hands everything over in its time.
func (p *Proxy) deliver() {
	for {
		select {
		case <-p.wake:
		case <-p.dead:
			return
		}
		p.mu.Lock()
		batch := p.way
		p.way = nil
		p.mu.Unlock()
		for _, c := range batch {
			sleepUntil(c.due)
			// An end that has gone away is noticed by who reads from it.
			if c.end == nil {
				_, _ = c.to.Write(c.bytes)
				continue
			}
			_ = c.to.CloseWrite()
			close(c.end)
		}
	}
}
