package fairlock

import (
	"time"

	"relock/internal/engine"
	"relock/rlock"
)

// The window of the external tests into the package.

// ScriptSources returns the Lua of every script, as it is sent.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire": acquireScript.Source(), "release": releaseScript.Source(), "heartbeat": heartbeatScript.Source(),
		"force_unlock": forceUnlockScript.Source(), "waiters": waitersScript.Source(),
	}
}

// QueueLease returns the Config.QueueLease of a session.
func QueueLease(s *rlock.Session) time.Duration { return (*engine.Session)(s).Config().QueueLease }
