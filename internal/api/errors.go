package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The errors that callers see; package rlock documents them.
var (
	ErrNotAcquired = errors.New("rlock: not acquired")
	ErrNotHeld     = errors.New("rlock: not held")
	ErrLost        = errors.New("rlock: lock lost")
	ErrReleased    = errors.New("rlock: lock released")
	ErrClosed      = errors.New("rlock: session closed")
	ErrName        = errors.New("rlock: bad name")
	ErrConfig      = errors.New("rlock: bad config")
	ErrArgument    = errors.New("rlock: bad argument")
	ErrUnavailable = errors.New("rlock: Redis is unavailable")
	ErrDeadlock    = errors.New("rlock: deadlock")
)

var (
	// ErrNilContext is the error for a nil ctx.
	ErrNilContext = fmt.Errorf("%w: ctx is nil; use context.Background()", ErrArgument)
	// ErrNoAnswer is an attempt that the end of a context has cut off.
	ErrNoAnswer = fmt.Errorf("%w: no answer", ErrUnavailable)
)

// NotAcquired explains a wait that ended because of ctx. lastErr, if any, is the client's
// error of the last attempt, so that "Redis is unreachable" can be told from "another
// owner holds it".
func NotAcquired(ctxErr, lastErr error) error {
	switch {
	case ctxErr != nil && lastErr != nil:
		return fmt.Errorf("%w: %w (last attempt: %w)", ErrNotAcquired, ctxErr, lastErr)
	case ctxErr != nil:
		return fmt.Errorf("%w: %w", ErrNotAcquired, ctxErr)
	case lastErr != nil:
		return fmt.Errorf("%w (last attempt: %w)", ErrNotAcquired, lastErr)
	default:
		return ErrNotAcquired
	}
}

// OfContext is the error of a context that is done, with its cause in the text when that
// says more. It is never nil, whatever a context of the caller's own says, since nil would be a lock.
func OfContext(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case err == nil:
		return cmp.Or(cause, context.Canceled)
	case cause == nil || cause.Error() == err.Error(): // errors of any type have a text, and not all can be compared
		return err
	}
	return fmt.Errorf("%w (%v)", err, cause)
}

// A TakenError says who has what a caller was refused; package rlock documents it.
type TakenError struct {
	Name  string
	Owner string
	TTL   time.Duration

	err error
}

// Taken makes a TakenError of why the wait ended. An empty owner is one that is not known.
func Taken(name, owner string, ttl time.Duration, err error) *TakenError {
	return &TakenError{name, owner, ttl, err}
}

// Error is the text of why the wait ended, and the owner.
func (e *TakenError) Error() string {
	switch {
	case e.err == nil: // made by hand, as in a test
		return ErrNotAcquired.Error()
	case e.Owner == "":
		return e.err.Error()
	}
	return fmt.Sprintf("%v; owner %s has it", e.err, Quote(e.Owner))
}

// Unwrap returns why the wait ended.
func (e *TakenError) Unwrap() error { return cmp.Or(e.err, ErrNotAcquired) }

// Wrap puts the operation and the lock's name in front of what went wrong.
func Wrap(op, name string, err error) error {
	return fmt.Errorf("%s %s: %w", op, Quote(name), err)
}

// maxQuoted is how many bytes of a name an error shows: errors end up in logs.
const maxQuoted = 128

// Quote quotes a name for an error, cut to a length that does no harm in a log.
func Quote(name string) string {
	if len(name) <= maxQuoted {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q... (%d bytes)", name[:maxQuoted], len(name))
}

// Shown is a name as an attribute of a log has it: cut as Quote cuts it.
func Shown(name string) string {
	if len(name) <= maxQuoted {
		return name
	}
	return fmt.Sprintf("%s... (%d bytes)", name[:maxQuoted], len(name))
}
