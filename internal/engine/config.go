package engine

import (
	"log/slog"
	"time"

	"relock/internal/clock"
	"relock/internal/kind"
	"relock/locktrace"
)

// config.go is the configuration of a session, checked and with its defaults, and the times that
// follow from it.

// Config is an rlock.Config that has been checked and has its defaults: the conversion of one to the
// other compiles only as long as they have the same fields. Package rlock documents them.
type Config struct {
	ID               string
	Prefix           string
	Lease            time.Duration
	ReleaseTimeout   time.Duration
	PollFloor        time.Duration
	QueueLease       time.Duration
	RedissonWatchdog time.Duration
	Replicas         int
	ReplicaTimeout   time.Duration
	HandOverLimit    int
	Polling          clock.Backoff
	Label            string
	Logger           *slog.Logger
	Trace            *locktrace.Trace
}

// AnswerTime is how long a caller that does not want to wait waits for an answer of Redis: long
// for an answer and short for a caller.
func (c *Config) AnswerTime() time.Duration { return min(time.Second, c.ReleaseTimeout) }

// TryTimeout bounds a TryLock: how long it waits for Redis, and for replicas.
func (c *Config) TryTimeout() time.Duration {
	if c.Replicas > 0 {
		return c.AnswerTime() + c.ReplicaTimeout
	}
	return c.AnswerTime()
}

// HeartbeatEvery is the time between two heartbeats of a session in the line of a fair lock: 5/24 of
// QueueLease, or poll floor. A session that missed two heartbeats is passed over, after 12/24; an
// unconfirmed grant outlives one (QueueLease/4). So when everybody in front of a waiter has died, it
// is in after 23/24 of a QueueLease at the latest: 12/24 until they count as silent, 6/24 for a
// grant that was given just before, and a heartbeat of its own. With the default of 5 s a session
// sends less than one command a second for each lock that it waits for.
func (c *Config) HeartbeatEvery() time.Duration {
	return max(min(c.QueueLease/24*5, c.PollFloor), time.Millisecond)
}

// RequestMemory is for how long after its last use Redis keeps the requests of a session: while
// one is sent again, while it is taken back, which is tried for as long, and as long again for
// copies that come late.
func (c *Config) RequestMemory() time.Duration {
	return max(3*kind.Memory, c.ReleaseTimeout+kind.Memory)
}
