//go:build !unix

package script

import "syscall"

// canCheck says that a probe cannot tell: there is no direct connection.
const canCheck = false

type probe struct{}

func newProbe(syscall.RawConn) *probe { return nil }

func (*probe) quiet() bool { return false }
