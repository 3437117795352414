package rlock

import (
	"log/slog"
	"time"

	"relock/internal/engine"
)

// The defaults of Config.
const (
	DefaultLease            = 30 * time.Second // Redisson's lockWatchdogTimeout
	DefaultReleaseTimeout   = 5 * time.Second  // leaves room for a Sentinel failover (about 2 s)
	DefaultPollFloor        = 2 * time.Second  // costs an idle waiter half a command a second
	DefaultQueueLease       = 5 * time.Second  // a fairlock's waiters send a heartbeat every fifth
	DefaultRedissonWatchdog = 30 * time.Second // Redisson's own default
	DefaultReplicaTimeout   = time.Second      // long for a replica that is in step
)

// The machine has these defaults too; this does not compile if one of them differs.
var _ = [1]struct{}{}[(DefaultLease-engine.DefaultLease)|
	(DefaultReleaseTimeout-engine.DefaultReleaseTimeout)|
	(DefaultPollFloor-engine.DefaultPollFloor)|
	(DefaultQueueLease-engine.DefaultQueueLease)|
	(DefaultRedissonWatchdog-engine.DefaultRedissonWatchdog)|
	(DefaultReplicaTimeout-engine.DefaultReplicaTimeout)]

// Config is how a Session behaves. The zero value is ready for use; a zero field stands for
// its default. Durations are at least 1 ms, rounded up to whole milliseconds in Redis.
type Config struct {
	// ID is the session's id, the first half of its private owners' ids. Two sessions must
	// not use the same id at a time. Default: a random UUID.
	ID string
	// Prefix is put before every lock name. Default "".
	Prefix string
	// Lease is how long a lock outlives its process; renewed at a third of it. Default 30 s.
	Lease time.Duration
	// ReleaseTimeout bounds one release, retries included. Default 5 s.
	ReleaseTimeout time.Duration
	// PollFloor is how long a waiter sleeps without a message. Default 2 s.
	PollFloor time.Duration
	// QueueLease is how long a silent waiter of a fairlock keeps its position. Default 5 s.
	QueueLease time.Duration
	// RedissonWatchdog is the lockWatchdogTimeout of the Java services that take the same
	// locks; of several, the shortest. When Redisson unlocks a lock whose owner goes on holding
	// it here, or renews a reader, it sets the lock's lease to that time. So a hold of a named
	// owner ([WithOwner]) and a read hold are renewed for at most that time, and trusted for no
	// longer between two answers of Redis. A hold with a fixed lease ([Lease]) is renewed like
	// that up to its end. Where no Java takes part it may be as long as Lease. Default 30 s, as
	// in Redisson.
	RedissonWatchdog time.Duration
	// Replicas is how many replicas must have acknowledged an acquisition before it counts: it
	// then survives a failover to any of those. The default of 0 waits for none. Until so many
	// have, Lock goes on waiting, and the lock stands in Redis so that no other owner comes in
	// between; TryLock returns. Both give the lock back when they fail, with an error that
	// matches [ErrUnavailable] and tells the numbers: "1 of 2 replicas". An acquisition costs a
	// round trip more and the replicas' answer, and takes a connection of the client's pool
	// meanwhile. NewSession logs if replicas are missing, and returns [ErrConfig] if the server
	// does not know WAIT or the ACL refuses it.
	//
	// It concerns all that is sent to Redis for a lock with a lease: nested and named holds, read
	// holds, permits, grants of a fairlock, and the new end of a [Hold.Extend]. What is handed over
	// in memory has been acknowledged before. A semaphore.Counter and a latch have no holder, and
	// wait for no replica. Neither do renewals: a failover that loses the last of them shortens the
	// lease by a third, and the session renews it as soon as it is connected again. Nor do
	// releases: one that is lost leaves the lock standing until its lease ends. docs/guarantees.md
	// says what is left to a replica that did not acknowledge.
	Replicas int
	// ReplicaTimeout bounds the wait for Replicas in one attempt, as does half the lease. A
	// TryLock may take so much longer. Default 1 s.
	ReplicaTimeout time.Duration
	// HandOverLimit bounds the hand-overs in memory in a row while other sessions may wait.
	// Default 0: no bound by number, as many as fit into a time slice of 10 ms. -1 switches
	// off hand-over, and the read holds that readers of a session share.
	HandOverLimit int
	// Polling makes waiters look by the clock instead of waiting for messages: for proxies and
	// services that do not let clients subscribe. The session then makes no subscription at all.
	// Each refused attempt of a waiter is followed by a sleep of the Backoff, or until the lease
	// ends if that is sooner; [Limit] ends a Lock with [ErrNotAcquired]. Releases are still
	// published, for sessions that listen. Default nil: waiters listen.
	//
	// What else depends on messages comes later: a forced unlock is noticed at the next renewal.
	// A waiter of a fairlock keeps its place in the queue and learns of its grant with its next
	// heartbeat, after a fifth of QueueLease or PollFloor at most, whatever the Backoff says.
	// A session that has handed a lock over in memory for a time slice leaves it to others for
	// the Backoff's first sleep.
	Polling Backoff
	// Label is what operators see beside this session's locks, at most 200 bytes. Default
	// "<host>:<pid>". It stands in Redis while the session lives, as JSON, with the time when
	// the session began and the version of this library, under "relock_session:<session id>".
	Label string
	// Logger hears what no error can tell a caller: lost locks, releases that go on in the
	// background, refused subscriptions. Default: discard.
	Logger *slog.Logger
	// Trace has hooks for metrics and tests. Optional.
	Trace *Trace
}

// engine is c as the machine takes it.
func (c Config) engine() engine.Config {
	return engine.Config{
		ID: c.ID, Prefix: c.Prefix,
		Lease: c.Lease, ReleaseTimeout: c.ReleaseTimeout, PollFloor: c.PollFloor, QueueLease: c.QueueLease,
		RedissonWatchdog: c.RedissonWatchdog, Replicas: c.Replicas, ReplicaTimeout: c.ReplicaTimeout,
		HandOverLimit: c.HandOverLimit, Polling: c.Polling, Label: c.Label, Logger: c.Logger, Trace: c.Trace,
	}
}
