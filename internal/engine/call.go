package engine

import (
	"context"
	"errors"

	"relock/pubsub"
)

// Listen subscribes to a channel on which scripts publish with [keyname.Names.Publish]. A session that
// polls gives an error.
func (s *Session) Listen(ctx context.Context, channel string) (*pubsub.Listener, error) {
	if s.cfg.Polling != nil {
		return nil, errPolls
	}
	return s.hub.Listen(ctx, channel)
}

var errPolls = errors.New("rlock: the session polls: Config.Polling is set")
