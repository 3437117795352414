package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/backoff"
	"relock/internal/lockerr"
	"relock/internal/script"
)

// Call runs a script of the lock that may run twice, until Redis answers or refuses it for
// good, ctx ends, or the release timeout is over. Errors: [ErrClosed], ctx's error if it was
// done before (nothing was sent), [ErrUnavailable] (with ctx's error, if that ended it), Redis's
// own, else decode's, all with op and the lock's name in front.
func (h *Handle) Call(ctx context.Context, op string, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	if h.err != nil {
		return lockerr.Wrap(op, h.names.Name(), h.err)
	}
	return h.CallWithin(ctx, h.s.cfg.ReleaseTimeout, op, cmd, decode)
}

// CallWithin is Call with a bound of its own in place of the release timeout.
func (h *Handle) CallWithin(ctx context.Context, bound time.Duration, op string, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	if err := h.call(ctx, bound, cmd, decode); err != nil {
		return lockerr.Wrap(op, h.names.Name(), err)
	}
	return nil
}

func (h *Handle) call(ctx context.Context, bound time.Duration, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	s := h.s
	switch {
	case h.err != nil:
		return h.err
	case ctx == nil:
		return lockerr.ErrNilContext
	}
	if err := s.registry.enter(); err != nil {
		return err
	}
	defer s.registry.leave()
	if ctx.Err() != nil {
		return lockerr.OfContext(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var last error
	for n := 0; ; n++ {
		reply := s.run.Run(bounded, cmd)
		err := reply.Error()
		if err == nil {
			return decode(reply)
		}
		if last == nil || !script.IsContext(err) {
			last = err
		}
		switch {
		case script.Classify(err) == script.Refused:
			return lockerr.Unavailable(err)
		case bounded.Err() == nil && backoff.Pause(bounded, n) == nil:
			continue
		case ctx.Err() != nil:
			return lockerr.CutOff(ctx, last)
		}
		return fmt.Errorf("no answer within %v: %w", bound, lockerr.Unavailable(last))
	}
}
