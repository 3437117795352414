//go:build unix

package script

import "syscall"

// canCheck says that quiet can tell.
const canCheck = true

// quiet reports whether nothing, not even the end, is to be read from a socket.
func quiet(conn syscall.RawConn) bool {
	alive := false
	err := conn.Read(func(fd uintptr) bool {
		var one [1]byte
		n, err := syscall.Read(int(fd), one[:])
		alive = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR)
		return true
	})
	return alive && err == nil
}
