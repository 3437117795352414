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
// script twice. While such a client connects anew, a call may take longer than its bound says,
// by what is left of the client's dial timeout (5 s unless its Dialer says otherwise).
//
// NewSession blocks until Redis has answered a PING, confirmed the session's own subscription
// and run a probe of what locks need, or ctx ends. Errors: [ErrConfig] for a bad field or a nil
// client, and for a server that can never work, with what to do about it: a replica, a server
// before Redis 6.2, a node of a Cluster behind a client for one server, an ACL that refuses
// scripts, PUBLISH, or keys that begin with Config.Prefix, and with Config.Replicas one that does
// not let this user wait for replicas; [ErrArgument] for a nil ctx;
// [ErrUnavailable] if Redis does not answer or cannot serve now.
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

// Shutdown closes the session in an orderly way, for graceful restarts. From now on Lock and
// its like end with [ErrClosed] outside of any section, also those that wait already; State,
// ForceUnlock and the operations of a Counter that do not wait go on. Open sections go on too,
// and any Lock on the context of an open section works as before, of this lock or another. When
// the last section has ended, Shutdown calls [Session.Close].
//
// Shutdown blocks until then, or until ctx ends: then Close ends the sections that are still
// open, and the error matches ctx's. It returns Close's errors too, and [ErrArgument] for a nil
// ctx, after which nothing has changed. A second call waits as well.
func (s *Session) Shutdown(ctx context.Context) error { return (*engine.Session)(s).Shutdown(ctx) }

// Close releases all locks that are held, ends waits and open sections with [ErrClosed], and
// closes the client if [Dial] made it. It returns when no goroutine and no subscription of
// the session is left. A lock that [Hold.Abandon] left standing stays. A second call returns
// the same.
//
// Close takes a round trip or two. In an outage it takes at most Config.ReleaseTimeout and half
// a second, and returns [ErrUnavailable]: what was not released ends with its lease. It does
// not wait for what it cannot end, a Logger or DialCtxFn that hangs, or a dial of a client that
// the session does not own.
func (s *Session) Close() error {
	if s == nil {
		return fmt.Errorf("close: %w: the session is nil", ErrArgument)
	}
	return (*engine.Session)(s).Close()
}
