package script

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

// link is one direct connection and the client that speaks over it.
type link struct {
	net.Conn
	client rueidis.Client
	of     *Connection
	raw    syscall.RawConn
	doubts uint32 // under which it was proved to lead to the session's server

	// Methods as values, made once: what is handed to others is on the heap.
	ends func()        // interrupt
	look func(uintptr) // see
	idle bool          // what see found last

	mu          sync.Mutex // guards what follows
	deadline    time.Time  // that the connection has
	interrupted bool
	ended       bool
}

var errNoSocket = errors.New("script: not a socket, so that nobody can see whether it is alive")

// take makes conn the link's connection.
func (l *link) take(conn net.Conn) error {
	l.Conn = conn
	socket := conn
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		socket = wrapped.NetConn() // of TLS
	}
	sc, ok := socket.(syscall.Conn)
	if !ok {
		_ = conn.Close()
		return errNoSocket
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		_ = conn.Close()
		return err
	}
	l.raw, l.ends, l.look = raw, l.interrupt, l.see
	l.of.add(conn)
	return nil
}

// torn reports whether a call failed with err because the command could not be written: what Redis has of
// it, if anything, is not whole, and never executed.
func torn(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "write"
}

// interrupt ends the call that is under way; rueidis sees a timeout.
func (l *link) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interrupted = true
	_ = l.Conn.SetDeadline(time.Unix(1, 0))
}

// SetDeadline is called by rueidis before each command. The deadline that it sets is up to an
// eighth later than t and serves the next commands too, for setting one starts two timers.
func (l *link) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	grace := time.Until(t) / 8
	switch {
	case l.interrupted:
		return nil
	case t.IsZero():
		l.deadline = t
	case l.deadline.Before(t) || l.deadline.Sub(t) > grace:
		l.deadline = t.Add(grace)
	default: // the one that is set will do
		return nil
	}
	return l.Conn.SetDeadline(l.deadline)
}

// Close is called by rueidis when a call fails. An interrupted one is drained first.
func (l *link) Close() error {
	l.mu.Lock()
	interrupted := l.interrupted
	l.mu.Unlock()
	if interrupted {
		return nil
	}
	return l.sever(true)
}

// drain waits until Redis has answered what was given up, or at most for patience, and resets the
// connection then.
func (l *link) drain(patience time.Duration) {
	_ = l.Conn.SetReadDeadline(time.Now().Add(patience))
	var one [1]byte
	if n, _ := l.Conn.Read(one[:]); n > 0 {
		return
	}
	_ = l.sever(true)
}

// end closes the connection, as sever does, and its client.
func (l *link) end(reset bool) {
	if l.Conn == nil {
		return
	}
	_ = l.sever(reset)
	if l.client != nil {
		l.client.Close()
	}
}

// closePatience is for how long a Close may hold up the call whose connection has broken. That of a socket
// takes microseconds; one of DialCtxFn is the caller's code, and may block.
const closePatience = 100 * time.Millisecond

// sever closes the connection, once. What is sent afterwards, over another one, waits for that. A reset
// leaves unsent what is still in the socket's buffer: a command whose call has failed would be executed
// behind what has been sent since.
func (l *link) sever(reset bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	l.of.remove(l.Conn)
	closed := make(chan error, 1)
	go func() {
		if reset {
			if inner := unsending(l.Conn); inner != l.Conn {
				_ = inner.Close()
			}
		}
		closed <- l.Conn.Close()
	}()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C: // it is left behind
		return nil
	}
}
