package engine

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// Call runs a script of the lock that may run twice, until decode accepts its reply, Redis
// refuses it for good, ctx ends, or the release timeout is over. Errors: [ErrClosed], ctx's
// error if it was done before (nothing was sent), else decode's, all with op and the lock's
// name in front.
func (h *Handle) Call(ctx context.Context, op string, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	if err := h.call(ctx, cmd, decode); err != nil {
		return named(op, h.names, err)
	}
	return nil
}

func (h *Handle) call(ctx context.Context, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	s := h.names.s
	switch {
	case h.err != nil:
		return h.err
	case ctx == nil:
		return errNilContext
	}
	if err := s.registry.enter(); err != nil {
		return err
	}
	defer s.registry.leave()
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, s.cfg.ReleaseTimeout)
	defer cancel()
	for n := 0; ; n++ {
		err := decode(s.run.Run(bounded, cmd))
		switch {
		case err == nil:
			return nil
		case script.Classify(err) == script.Refused || ctx.Err() != nil:
			return err
		case bounded.Err() != nil || pause(bounded, n) != nil:
			return fmt.Errorf("no answer within the release timeout: %w", err)
		}
	}
}
