package engine

import "time"

// answerTime is how long a caller that does not want to wait waits for an answer of Redis: long
// for an answer and short for a caller.
func (s *Session) answerTime() time.Duration { return min(time.Second, s.cfg.ReleaseTimeout) }

// tryTimeout bounds a TryLock: how long it waits for Redis, and for replicas.
func (s *Session) tryTimeout() time.Duration {
	if s.cfg.Replicas > 0 {
		return s.answerTime() + s.cfg.ReplicaTimeout
	}
	return s.answerTime()
}

// TryTimeout returns how long a TryLock of the handle waits for Redis at most.
func (h *Handle) TryTimeout() time.Duration { return h.s.tryTimeout() }
