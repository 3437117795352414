//go:build !unix

package script

import "syscall"

// canCheck says that quiet cannot tell: there is no direct connection.
const canCheck = false

func quiet(syscall.RawConn) bool { return false }
