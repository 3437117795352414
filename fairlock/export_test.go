package fairlock

import (
	"time"

	"relock/internal/engine"
	"relock/rlock"
)

// The window of the external tests into the package.

// QueueLease returns the Config.QueueLease of a session.
func QueueLease(s *rlock.Session) time.Duration { return (*engine.Session)(s).Config().QueueLease }
