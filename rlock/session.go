package rlock

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"relock/internal/engine"
)

// Session ties a process to one Redis deployment. It has what all locks of the process share:
// the client, the subscriptions, the watchdog that renews leases. A service has one. Safe for
// concurrent use.
type Session engine.Session

// NewSession ties this process to the deployment that client was built for: standalone,
// Sentinel or Cluster. The caller keeps owning client, and closes it after the session. Give
// client the options that [Dial] sets. Never set ConnLifetime: with it rueidis may run a
// script twice.
//
// NewSession blocks until Redis has answered a PING and confirmed the session's own
// subscription, or ctx ends. Errors: [ErrConfig] for a bad field or a nil client,
// [ErrArgument] for a nil ctx, else the error of the PING.
func NewSession(ctx context.Context, client rueidis.Client, cfg Config) (*Session, error) {
	s, err := engine.New(ctx, client, cfg.engine(), engine.Options{})
	return (*Session)(s), err
}

// ID returns the session's id: a random UUID unless Config.ID was set.
func (s *Session) ID() string {
	if s == nil {
		return ""
	}
	return (*engine.Session)(s).ID()
}

// Close releases all locks that are held, ends waits and open sections with [ErrClosed], and
// closes the client if [Dial] made it. It returns when no goroutine and no subscription of
// the session is left. A lock that [Hold.Abandon] left standing stays. A second call returns
// the same.
//
// Close takes a round trip or two, and at most about twice Config.ReleaseTimeout while Redis
// does not answer. It then returns an error: what was not released ends with its lease.
func (s *Session) Close() error {
	if s == nil {
		return fmt.Errorf("close: %w: the session is nil", ErrArgument)
	}
	return (*engine.Session)(s).Close()
}
