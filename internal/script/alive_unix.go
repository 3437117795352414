//go:build unix

package script

import "syscall"

// canCheck says that a probe can tell.
const canCheck = true

// A probe reports whether nothing, not even the end, is to be read from a socket. It is made once
// for each socket, for what it hands to the RawConn is on the heap.
type probe struct {
	conn  syscall.RawConn
	look  func(fd uintptr) bool
	alive bool
}

func newProbe(conn syscall.RawConn) *probe {
	p := &probe{conn: conn}
	p.look = func(fd uintptr) bool {
		var one [1]byte
		n, err := syscall.Read(int(fd), one[:])
		p.alive = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR)
		return true
	}
	return p
}

// quiet reports whether the connection is open, and Redis has said nothing unasked, as far as
// this end knows. It costs a system call.
func (p *probe) quiet() bool {
	p.alive = false
	return p.conn.Read(p.look) == nil && p.alive
}
