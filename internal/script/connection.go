package script

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Connection is what is known of the connections that scripts go over, and the way to end them.
type Connection struct {
	// suspect: one is being made, or failed last; see Runner.Multi.
	suspect atomic.Bool
	flying  atomic.Int64 // calls whose callers wait: one for a command, or for many at once

	// Doubts counts what Redialled and Doubt note. What was confirmed under another count is in doubt.
	Doubts atomic.Uint32

	moves moves // to another server

	life  context.Context // ends with Sever
	sever context.CancelFunc
	mu    sync.Mutex
	open  map[net.Conn]struct{}
}

// NewConnection returns a Connection that nothing is known of.
func NewConnection() *Connection {
	c := &Connection{open: map[net.Conn]struct{}{}}
	c.life, c.sever = context.WithCancel(context.Background())
	return c
}

// Redialled notes that the connection is made anew. The function that dials calls it.
func (c *Connection) Redialled() {
	c.suspect.Store(true)
	c.Doubts.Add(1)
}

// Connected notes that the connections that a session needs first have been made: none of them
// was made anew.
func (c *Connection) Connected() { c.suspect.Store(false) }

// Doubt notes that the session may have missed that the server was replaced, or what it said.
func (c *Connection) Doubt() { c.Doubts.Add(1) }

// Life returns a context that ends with Sever: no dial should outlive it.
func (c *Connection) Life() context.Context { return c.life }

// Watch returns conn, as it is to be used. When it breaks, scripts are sent as over a suspect
// connection from then on, and not only once somebody dials.
func (c *Connection) Watch(conn net.Conn) net.Conn {
	w := &watched{Conn: conn, of: c, tail: []byte("\r\n")} // what the server says first begins a line
	c.add(w)
	return w
}

// Keep is Watch for a connection that no other command goes over: when it breaks, nothing is in
// doubt.
func (c *Connection) Keep(conn net.Conn) net.Conn {
	k := &kept{Conn: conn, of: c}
	c.add(k)
	return k
}

// add has Sever close conn.
func (c *Connection) add(conn net.Conn) {
	c.mu.Lock()
	c.open[conn] = struct{}{}
	c.mu.Unlock()
	if c.life.Err() != nil { // Sever may not have seen it
		_ = conn.Close()
	}
}

func (c *Connection) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// Sever ends all connections, and every dial, at once. Without it rueidis waits for a silent
// server: a second when it closes a connection, its timeout while it greets one.
func (c *Connection) Sever() {
	c.sever()
	var all sync.WaitGroup
	for _, conn := range c.connections() {
		all.Go(func() { _ = conn.Close() }) // which may be the caller's code, and block
	}
	all.Wait()
}

// connections returns those that are open.
func (c *Connection) connections() []net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.open))
}

// Unmade returns the error of what was to make a connection to addr, as one of a connection that was not
// made: no command was sent. Those of a handshake, and of a caller's own function, do not say so.
func Unmade(addr string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return err
	}
	return &net.OpError{Op: "dial", Net: "tcp", Addr: named(addr), Err: err}
}

// named is an address as it was given.
type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

// watched is a connection that tells when it breaks: rueidis closes it then, before it answers the
// calls that were under way.
type watched struct {
	net.Conn
	of    *Connection
	unsub atomic.Bool // UNSUBSCRIBE was sent
	heard atomic.Bool // the server has said something
	tail  []byte      // Read only: the end of what came before, for a refusal may come in pieces
}

// crowd is from how many calls on a write lets other goroutines run first. Below it yielding was
// seen to gain nothing; with 16 it saves some, and with 64 a fifth of what a command costs the
// server (BenchmarkOwnLocks).
const crowd = 8

// Write writes p. Where many callers wait, those who have got their answers are about to send
// their next commands. rueidis writes as soon as the first of them has, so that the others come in
// writes of their own. Behind a yield they go together, which saves system calls on both sides.
func (w *watched) Write(p []byte) (int, error) {
	if w.of.flying.Load() > crowd {
		runtime.Gosched()
	}
	if bytes.Contains(p, unsubscribe) { // or SUNSUBSCRIBE
		w.unsub.Store(true)
	}
	n, err := w.Conn.Write(p)
	if err != nil {
		err = w.unmade(err)
	}
	return n, err
}

// unmade returns the error with which the connection fails. Before the server has said anything the
// connection counts as not made: rueidis sends no command until its greeting is answered.
func (w *watched) unmade(err error) error {
	if w.heard.Load() {
		return err
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

var unsubscribe = []byte("UNSUBSCRIBE\r\n")

// refusals begin lines that have rueidis panic behind UNSUBSCRIBE (v1.0.79).
var refusals = [][]byte{[]byte("\r\n-BUSY "), []byte("\r\n-MISCONF "), []byte("\r\n-MASTERDOWN ")}

// errRefused ends a connection whose UNSUBSCRIBE, or the PING behind it, may have been refused.
var errRefused = errors.New("script: Redis was busy with a script, or could not serve, and may have refused to unsubscribe")

// Read reads into p. Where channels are unsubscribed the refusals count as the end of the connection. Package pubsub
// asks before, but a script may begin, or a server fail to save, in between.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	switch {
	case err != nil:
		return n, w.unmade(err)
	case !w.heard.Load():
		w.heard.Store(true)
	}
	if w.unsub.Load() && w.refused(p[:n]) {
		return 0, errRefused
	}
	return n, err
}

// refused reports whether a refusal is in what was read, or begins in what came before and goes on in it.
func (w *watched) refused(read []byte) bool {
	const most = len("\r\n-MASTERDOWN ") // bytes of a refusal
	seam := slices.Concat(w.tail, read[:min(len(read), most)])
	w.tail = seam[max(0, len(seam)-most):]
	if len(read) > most {
		w.tail = bytes.Clone(read[len(read)-most:])
	}
	return slices.ContainsFunc(refusals, func(line []byte) bool { return bytes.Contains(seam, line) || bytes.Contains(read, line) })
}

func (w *watched) Close() error {
	w.of.suspect.Store(true)
	w.of.remove(w)
	return w.Conn.Close()
}

// kept is a connection that Sever ends.
type kept struct {
	net.Conn
	of *Connection
}

func (k *kept) Close() error {
	k.of.remove(k)
	return k.Conn.Close()
}
