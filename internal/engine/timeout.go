package engine

import (
	"math/rand/v2"
	"time"

	"relock/internal/backoff"
)

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

// lookAfter is when to look again if Redis said that it is worth while in so many milliseconds
// (-1: it does not know).
func (s *Session) lookAfter(ms int64) time.Duration {
	// Up to a tenth less than the floor, so that the waiters of many sessions do not look
	// all at once for ever.
	floor := s.cfg.PollFloor
	sleep := floor - time.Duration(rand.Int64N(int64(floor)/10+1))
	if ms >= 0 && ms < sleep.Milliseconds() {
		// PTTL is rounded down by up to a millisecond.
		sleep = time.Duration(ms+1) * time.Millisecond
	}
	return s.now() + max(sleep, backoff.Least)
}
