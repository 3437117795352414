package script_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"relock/internal/script"
)

// The directions of a relay.
const (
	toServer = iota
	toClient
)

// A relay passes bytes on between a client and a server, and knows nothing of what they mean. Its sockets
// have small buffers for what comes from the client.
type relay struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	conns  []net.Conn
	client net.Conn      // of the last connection
	taken  chan struct{} // closed when all that comes from that client has been passed on
	dialed *opaque       // the client's end of the last connection
	passed [2]int        // bytes
	stops  [2]*stop
	struck []*stop
}

// A stop strikes once, the connection whose bytes are too many.
type stop struct {
	left    int
	cut     bool          // the connection ends; else the rest waits for letGo
	reached chan struct{} // closed when it strikes
	over    chan struct{} // closed by letGo
	letGo   func()
}

func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{ln: ln, target: target}
	r.wg.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

// dial is a script.DialFunc that leads to the relay, whatever the address.
func (r *relay) dial(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	conn, err := d.DialContext(ctx, "tcp", r.ln.Addr().String())
	if err != nil {
		return nil, err
	}
	o := &opaque{Conn: conn}
	r.mu.Lock()
	r.dialed = o
	r.mu.Unlock()
	return o, conn.(*net.TCPConn).SetWriteBuffer(sendBuffer)
}

// An opaque connection is one that the caller of Dial has made of a TCPConn: it shows no more than it must.
type opaque struct {
	net.Conn
	reads  atomic.Bool  // Read was called after the last Write, which has returned then
	closes atomic.Int32 // calls of Close

	onRead     func() // called when bytes have been read, if not nil
	onDeadline func(time.Time)
}

func (o *opaque) SyscallConn() (syscall.RawConn, error) { return o.Conn.(syscall.Conn).SyscallConn() }

func (o *opaque) Read(p []byte) (int, error) {
	o.reads.Store(true)
	n, err := o.Conn.Read(p)
	if o.onRead != nil {
		o.onRead()
	}
	return n, err
}

func (o *opaque) Write(p []byte) (int, error) {
	o.reads.Store(false)
	return o.Conn.Write(p)
}

func (o *opaque) SetDeadline(t time.Time) error {
	err := o.Conn.SetDeadline(t)
	if o.onDeadline != nil {
		o.onDeadline(t)
	}
	return err
}

func (o *opaque) Close() error {
	o.closes.Add(1)
	return o.Conn.Close()
}

// end returns the client's end of the last connection.
func (r *relay) end() *opaque {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialed
}

// sendBuffer is of a client's socket; the kernel makes it up to twice as much, and what the relay buffers too.
const sendBuffer = 128 << 10

var _ script.DialFunc = (*relay)(nil).dial

func (r *relay) accept() {
	for {
		client, err := r.ln.Accept()
		if err != nil {
			return // closed
		}
		_ = client.(*net.TCPConn).SetReadBuffer(sendBuffer / 8)
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		taken := make(chan struct{})
		r.conns, r.client, r.taken = append(r.conns, client, server), client, taken
		r.mu.Unlock()
		r.wg.Go(func() {
			defer close(taken)
			r.pump(toServer, server, client)
		})
		r.wg.Go(func() { r.pump(toClient, client, server) })
	}
}

// close ends the relay and its connections.
func (r *relay) close() {
	_ = r.ln.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	for _, s := range r.struck {
		s.letGo()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// pump passes on what goes one way. When a side ends, so does the other, behind all that came before.
func (r *relay) pump(way int, to, from net.Conn) {
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !r.pass(way, to, buf[:n]) {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// pass writes p, as far as the stop lets it. It returns false at the end of the connection.
func (r *relay) pass(way int, to net.Conn, p []byte) bool {
	r.mu.Lock()
	s, k := r.stops[way], len(p)
	if s != nil {
		k = min(k, s.left)
		s.left -= k
	}
	if k < len(p) {
		r.stops[way], r.struck = nil, append(r.struck, s)
	}
	r.passed[way] += k
	r.mu.Unlock()
	if _, err := to.Write(p[:k]); err != nil {
		return false
	}
	if k == len(p) {
		return true
	}
	close(s.reached)
	if s.cut {
		return false
	}
	<-s.over
	return r.pass(way, to, p[k:])
}

// count returns how many bytes have gone one way.
func (r *relay) count(way int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passed[way]
}

// last returns what is closed when all that comes from the client of the last connection has been passed on.
func (r *relay) last() (taken <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}

// hold lets n bytes more go one way, and holds the rest until letGo is called.
func (r *relay) hold(way, n int) (reached <-chan struct{}, letGo func()) {
	s := r.stop(way, n, false)
	return s.reached, s.letGo
}

// cut lets n bytes more go one way, and ends the connection in place of the rest.
func (r *relay) cut(way, n int) { r.stop(way, n, true) }

func (r *relay) stop(way, n int, cut bool) *stop {
	over := make(chan struct{})
	s := &stop{left: n, cut: cut, reached: make(chan struct{}), over: over, letGo: sync.OnceFunc(func() { close(over) })}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops[way] = s
	return s
}

// say sends the client of the last connection what the server has not.
func (r *relay) say(t *testing.T, text string) {
	t.Helper()
	r.mu.Lock()
	client := r.client
	r.mu.Unlock()
	if _, err := client.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// dials returns how many connections there were.
func (r *relay) dials() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns) / 2
}
