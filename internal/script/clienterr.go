package script

import (
	"context"
	"errors"
	"fmt"

	"relock/internal/api"
)

// clienterr.go makes the errors that callers see of those of the client.

// AsUnavailable marks the client's error of an attempt with [api.ErrUnavailable], if Redis did not
// answer it or cannot serve, and with [api.ErrConfig] if it lacks a command. Every error of the client
// that a caller gets to see has passed here.
func AsUnavailable(err error) error {
	switch {
	case Lacks(err) && !errors.Is(err, api.ErrConfig):
		return fmt.Errorf("%w: the server lacks a command, or has another name for it (rename-command); locks need those that "+
			"docs/operations.md#acl lists under their own names: %w", api.ErrConfig, err)
	case errors.Is(err, api.ErrUnavailable) || !Unavailable(err):
		return err
	case Denied(err):
		return denial{err}
	}
	return fmt.Errorf("%w: %w", api.ErrUnavailable, err)
}

// A denial is a refusal by the server's ACL. It matches [api.ErrUnavailable], and its text does not say
// that Redis could not be reached: an operator has to allow something.
type denial struct{ err error }

func (d denial) Error() string   { return "rlock: Redis does not allow it: " + d.err.Error() }
func (d denial) Unwrap() []error { return []error{api.ErrUnavailable, d.err} }

// CutOff is the error of a call whose context ended before Redis answered; last is the
// client's error of the last attempt.
func CutOff(ctx context.Context, last error) error {
	if IsContext(last) {
		last = api.ErrNoAnswer
	}
	return fmt.Errorf("%w (%w)", api.OfContext(ctx), AsUnavailable(last))
}
