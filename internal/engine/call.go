package engine

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/lockerr"
	"relock/internal/script"
	"relock/pubsub"
)

// What kinds of locks, and packages that are built on locks, ask of the machine beside Lock.

// enter begins an operation that concerns no claim. If it returns no error, the session's Close
// waits for its life to be left.
func (h *Handle) enter(ctx context.Context) error {
	if h.err != nil {
		return h.err
	}
	return h.s.life.EnterWith(ctx)
}

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
	err := h.enter(ctx)
	if err == nil {
		defer h.s.life.Leave()
		var reply rueidis.RedisResult
		if reply, err = h.s.sender.Call(ctx, bound, cmd); err == nil {
			err = decode(reply)
		}
	}
	if err != nil {
		return lockerr.Wrap(op, h.names.Name(), err)
	}
	return nil
}

// Go runs fn in a goroutine of the session. Its context ends when ctx does or when Close
// begins; Close waits for fn to return. Errors: [ErrClosed], ctx's error if it is done, and the
// handle's own; then fn does not run.
func (h *Handle) Go(ctx context.Context, fn func(ctx context.Context)) error {
	if h.err != nil {
		return h.err
	}
	return h.s.life.Go(ctx, fn)
}

// Listen subscribes to a channel on which scripts publish with [keyname.Names.Publish]. A session that
// polls gives an error.
func (s *Session) Listen(ctx context.Context, channel string) (*pubsub.Listener, error) {
	if s.cfg.Polling != nil {
		return nil, errPolls
	}
	return s.hub.Listen(ctx, channel)
}

var errPolls = errors.New("rlock: the session polls: Config.Polling is set")
