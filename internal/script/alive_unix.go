//go:build unix

package script

import "syscall"

// canCheck says that a link can tell whether it is alive.
const canCheck = true

// see notes whether nothing, not even the end, is to be read from the socket: the connection is open,
// and Redis has said nothing unasked, as far as this end knows. It costs a system call. RawConn.Control calls
// it, since RawConn.Read would not once the deadline of the last command is over.
func (l *link) see(fd uintptr) {
	var one [1]byte
	n, err := syscall.Read(int(fd), one[:])
	l.idle = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR)
}

// noLinger has the closing of a socket discard what is still in its buffer.
func noLinger(fd uintptr) {
	_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
}
