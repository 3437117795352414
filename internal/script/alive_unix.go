//go:build unix

package script

import "syscall"

// canCheck says that a link can tell whether it is alive.
const canCheck = true

// see notes whether nothing, not even the end, is to be read from the socket: the connection is open,
// and Redis has said nothing unasked, as far as this end knows. It costs a system call.
func (l *link) see(fd uintptr) bool {
	var one [1]byte
	n, err := syscall.Read(int(fd), one[:])
	l.idle = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR)
	return true
}
