package engine

import (
	"strings"

	"relock/internal/lockerr"
)

// The errors that nearly every file here returns.
var (
	ErrNotAcquired = lockerr.ErrNotAcquired
	ErrNotHeld     = lockerr.ErrNotHeld
	ErrLost        = lockerr.ErrLost
	ErrReleased    = lockerr.ErrReleased
	ErrClosed      = lockerr.ErrClosed
	ErrArgument    = lockerr.ErrArgument
	ErrUnavailable = lockerr.ErrUnavailable
	ErrDeadlock    = lockerr.ErrDeadlock
)

// opError names the operation and the lock in front of what went wrong.
func opError(op string, p Primitive, err error) error {
	if p.Kind().Permits {
		op = strings.NewReplacer("unlock", "release", "lock", "acquire").Replace(op)
	}
	return lockerr.Wrap(op, p.Names().Name(), err)
}
