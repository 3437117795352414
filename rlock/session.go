package rlock

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/engine"
	"relock/internal/redis"
)

// Session ties a process to one Redis deployment, with all that its locks share. A service has one.
// Safe for concurrent use.
type Session engine.Session

// NewSession ties this process to the deployment that client was built for: standalone, Sentinel or
// Cluster. The caller keeps owning client, and closes it after the session; docs/operations.md has
// the options that it needs. Warning: with ConnLifetime rueidis may run a script twice.
//
// NewSession blocks until Redis has confirmed a subscription and run a probe of what locks need, or
// ctx ends; it tries once. Errors: [ErrUnavailable]; [ErrConfig] also for an unfit server: a
// replica, Redis before 6.2, one of a Cluster behind a client for one server, an ACL that refuses
// the probe.
func NewSession(ctx context.Context, client rueidis.Client, cfg Config) (*Session, error) {
	switch {
	case ctx == nil:
		return nil, fmt.Errorf("new session: %w", api.ErrNilContext)
	case client == nil:
		return nil, fmt.Errorf("new session: %w: client is nil; it must be a rueidis.Client", ErrConfig)
	}
	checked, err := cfg.checked()
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	s, err := engine.New(ctx, client, checked, redis.Options{Version: Version})
	return (*Session)(s), err
}

// ID returns the session's id: a random UUID unless Config.ID was set.
func (s *Session) ID() string {
	if s == nil {
		return ""
	}
	return (*engine.Session)(s).ID()
}

// Shutdown closes the session for a graceful restart. From now on Lock and its like end with
// [ErrClosed] outside of any section, also those that wait already. Open sections go on, and so
// does any Lock on the context of one; State, ForceUnlock and what does not wait of a Counter too.
// When the last section has ended, or ctx ends, Shutdown calls [Session.Close]. It returns the
// errors of that, and ctx's if sections were open. A second call waits too.
func (s *Session) Shutdown(ctx context.Context) error { return (*engine.Session)(s).Shutdown(ctx) }

// Close releases all locks that are held, but for those that [Hold.Abandon] left standing, ends
// waits and open sections with [ErrClosed], and closes the client if [Dial] made it. It returns
// when no goroutine and no subscription of the session is left, after a round trip or two; in an
// outage after at most Config.ReleaseTimeout and a second, with [ErrUnavailable]: what was not
// released ends with its lease. A second call returns the same.
//
// Ending a section runs code of the caller's, if its context is derived from one of the caller's own making. If that
// code blocks for longer than Config.ReleaseTimeout, its lock is left to its lease, for a caller may rely on it yet, and Close
// returns as in an outage. If it panics, so does Close, behind all else.
func (s *Session) Close() error { return (*engine.Session)(s).Close() }
