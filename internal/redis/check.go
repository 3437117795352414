package redis

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"relock/internal/api"
	"relock/internal/script"
)

// atStart is how long a session that begins looks for replicas at most.
const atStart = 100 * time.Millisecond

// Check finds out whether replicas can be waited for here. That they are not there yet is no
// error: log hears of it. Errors: [api.ErrConfig] for a server that never lets this user wait,
// else the client's.
func (a *Asker) Check(ctx context.Context, cluster bool, log *slog.Logger) error {
	if a.Want == 0 {
		return nil
	}
	_, got, err := a.Run.Replicated(ctx, nil, a.Want, min(a.Timeout, atStart))
	remedy := ""
	switch {
	case err == nil && got < int64(a.Want) && !cluster:
		log.Warn("relock: fewer replicas are connected than acquisitions wait for", "connected", got, "Config.Replicas", a.Want)
		return nil
	case err == nil:
		return nil
	case script.Denied(err):
		remedy = "the ACL does not let this user wait for replicas; allow +wait, or leave Config.Replicas at 0"
	case script.Lacks(err):
		return fmt.Errorf("%w: the server does not know WAIT, with which replicas acknowledge; leave Config.Replicas at 0: %w", api.ErrConfig, err)
	case cluster:
		return nil // one node does not answer, and others may
	default:
		return script.AsUnavailable(err)
	}
	return fmt.Errorf("%w: %s: %w", api.ErrConfig, remedy, script.AsUnavailable(err))
}
