package tracing

import (
	"context"
	"errors"

	"relock/internal/lockerr"
	"relock/locktrace"
)

// OutcomeOf sorts the error of a Lock, or of a TryLock.
func OutcomeOf(err error, try bool) locktrace.Outcome {
	switch {
	case err == nil:
		return locktrace.OutcomeAcquired
	case errors.Is(err, lockerr.ErrClosed):
		return locktrace.OutcomeClosed
	case errors.Is(err, lockerr.ErrDeadlock):
		return locktrace.OutcomeDeadlock
	case errors.Is(err, lockerr.ErrUnavailable):
		return locktrace.OutcomeUnavailable
	case errors.Is(err, context.Canceled):
		return locktrace.OutcomeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return locktrace.OutcomeTimedOut
	case errors.Is(err, lockerr.ErrNotAcquired) && try:
		return locktrace.OutcomeRefused
	case errors.Is(err, lockerr.ErrNotAcquired):
		return locktrace.OutcomeTimedOut
	}
	return locktrace.OutcomeFailed
}
