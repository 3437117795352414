package engine

import (
	"context"
	"errors"
	"fmt"

	"relock/internal/api"
)

// Do runs fn while holding what the handle locks, which is something.
func (h *Handle) Do(ctx context.Context, n int, fn func(context.Context) error, opts []api.Option) (err error) {
	if fn == nil {
		return opError("do", h.prim, fmt.Errorf("%w: fn is nil", ErrArgument))
	}
	opts, async := api.OfDo(opts)
	section, hold, err := h.Lock(ctx, n, true, opts)
	if err != nil {
		return err
	}
	if async {
		defer hold.UnlockAsync()
		return fn(section)
	}
	// Deferred, so that it also runs when fn panics or calls runtime.Goexit; then the
	// release's error is dropped, and the panic goes on.
	defer func() { err = errors.Join(err, hold.Unlock(false)) }()
	return fn(section)
}
