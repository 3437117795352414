package engine

import (
	"errors"
	"fmt"
	"strings"

	"relock/internal/api"
)

// The errors that nearly every file here returns.
var (
	ErrNotAcquired = api.ErrNotAcquired
	ErrNotHeld     = api.ErrNotHeld
	ErrLost        = api.ErrLost
	ErrReleased    = api.ErrReleased
	ErrClosed      = api.ErrClosed
	ErrArgument    = api.ErrArgument
	ErrUnavailable = api.ErrUnavailable
	ErrDeadlock    = api.ErrDeadlock
)

// meanwhile adds to the error of a Lock that was not served why others of the session wait: it may have stood
// behind one of them, and asked nothing itself. It is no reason of its own, so it is in the text only.
func (s *Session) meanwhile(err error) error {
	if s == nil || !errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrUnavailable) {
		return err
	}
	if cause := s.outage.Cause(); cause != nil {
		return fmt.Errorf("%w (other Locks of this session wait: %v)", err, cause)
	}
	return err
}

// opError names the operation and the lock in front of what went wrong.
func opError(op string, p Primitive, err error) error {
	if p.Kind().Permits {
		op = strings.NewReplacer("unlock", "release", "lock", "acquire").Replace(op)
	}
	return api.Wrap(op, p.Names().Name(), err)
}
