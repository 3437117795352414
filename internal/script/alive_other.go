//go:build !unix

package script

// canCheck says that a link cannot tell whether it is alive: there is no direct connection.
const canCheck = false

func (*link) see(uintptr) {}

// noLinger does nothing: a TCPConn has SetLinger.
func noLinger(uintptr) {}
