package report

import (
	"context"
	"errors"

	"relock/internal/api"
	"relock/locktrace"
)

// OutcomeOf sorts the error of a Lock, or of a TryLock.
func OutcomeOf(err error, try bool) locktrace.Outcome {
	switch {
	case err == nil:
		return locktrace.OutcomeAcquired
	case errors.Is(err, api.ErrClosed):
		return locktrace.OutcomeClosed
	case errors.Is(err, api.ErrDeadlock):
		return locktrace.OutcomeDeadlock
	case errors.Is(err, api.ErrUnavailable):
		return locktrace.OutcomeUnavailable
	case errors.Is(err, context.Canceled):
		return locktrace.OutcomeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return locktrace.OutcomeTimedOut
	case errors.Is(err, api.ErrNotAcquired) && try:
		return locktrace.OutcomeRefused
	case errors.Is(err, api.ErrNotAcquired):
		return locktrace.OutcomeTimedOut
	}
	return locktrace.OutcomeFailed
}
