package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"relock/internal/script"
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

// unavailable marks the client's error of an attempt with [ErrUnavailable], if Redis did not
// answer it or cannot serve. Every error of the client that a caller gets to see has passed
// here.
func unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) || !script.Unavailable(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// errNoAnswer is an attempt that the end of a context has cut off.
var errNoAnswer = fmt.Errorf("%w: no answer", ErrUnavailable)

// cutOff is the error of a call whose context ended before Redis answered; last is the
// client's error of the last attempt.
func cutOff(ctx context.Context, last error) error {
	if script.IsContext(last) {
		last = errNoAnswer
	}
	return fmt.Errorf("%w (%w)", contextError(ctx), unavailable(last))
}

// opError names the operation and the lock in front of what went wrong.
func opError(op string, p Primitive, err error) error {
	if p.Kind().Permits {
		op = strings.NewReplacer("unlock", "release", "lock", "acquire").Replace(op)
	}
	return named(op, p.Names(), err)
}

func named(op string, n *Names, err error) error {
	return fmt.Errorf("%s %s: %w", op, Quote(n.Name()), err)
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

var errNilContext = fmt.Errorf("%w: ctx is nil; use context.Background()", ErrArgument)

// notAcquired explains a wait that ended because of ctx. lastErr, if any, is the client's
// error of the last attempt, so that "Redis is unreachable" can be told from "somebody else
// holds it".
func notAcquired(ctxErr, lastErr error) error {
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

// contextError is the error of a context that is done, with its cause in the text when that
// says more.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w (%v)", err, cause)
}
