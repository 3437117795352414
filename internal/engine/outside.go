package engine

import (
	"context"
	"errors"

	"relock/internal/lockerr"
	"relock/pubsub"
)

// What packages need that are built on locks without being a kind of lock themselves.

// Listen subscribes to a channel on which scripts publish with [Names.Publish]. A session that
// polls gives an error.
func (s *Session) Listen(ctx context.Context, channel string) (*pubsub.Listener, error) {
	if s.cfg.Polling != nil {
		return nil, errPolls
	}
	return s.hub.Listen(ctx, channel)
}

var errPolls = errors.New("rlock: the session polls: Config.Polling is set")

// Go runs fn in a goroutine of the session. Its context ends when ctx does or when Close
// begins; Close waits for fn to return. Errors: [ErrClosed], ctx's error if it is done, and the
// handle's own; then fn does not run.
func (h *Handle) Go(ctx context.Context, fn func(ctx context.Context)) error {
	switch {
	case h.err != nil:
		return h.err
	case ctx == nil:
		return lockerr.ErrNilContext
	}
	s := h.s
	if err := s.registry.enter(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		s.registry.leave()
		return lockerr.OfContext(ctx)
	}
	s.life.background.Go(func() {
		defer s.registry.leave()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life.closing, cancel)()
		fn(ctx)
	})
	return nil
}
