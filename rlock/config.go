package rlock

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"relock/internal/api"
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

// Config is how a Session behaves. A zero field stands for its default. Durations are from 1 ms to
// 100 years, rounded up to milliseconds.
type Config struct {
	// ID is the session's id, the first half of its private owners' ids. Two sessions must not use
	// the same id at a time. Default: a random UUID.
	ID             string
	Prefix         string        // put before every lock name; default ""
	Lease          time.Duration // how long a lock outlives its process; renewed at a third; default 30 s
	ReleaseTimeout time.Duration // bounds a release or a question to Redis, retries included; default 5 s
	PollFloor      time.Duration // how long a waiter sleeps without a message; default 2 s
	QueueLease     time.Duration // how long a silent waiter of a fairlock keeps its position; default 5 s
	// RedissonWatchdog is the shortest lockWatchdogTimeout of the Java services that take the same
	// locks. Redisson may cut leases of named owners ([WithOwner]) and of readers to it, so they are
	// renewed for no longer: docs/redisson.md. Without Java it may equal Lease. Default 30 s.
	RedissonWatchdog time.Duration
	// Replicas is how many replicas must have acknowledged an acquisition before it counts: it then
	// survives a failover to any of those. Until then Lock waits, and the lock keeps others out. If
	// that fails [ErrUnavailable] says "1 of 2 replicas". It costs a round trip more, and a connection
	// meanwhile. Renewals and releases do not wait: see docs/guarantees.md. Default 0: none.
	Replicas int
	// ReplicaTimeout bounds the wait for Replicas in one attempt, as does half the lease. A TryLock
	// may take so much longer. Default 1 s.
	ReplicaTimeout time.Duration
	// HandOverLimit bounds the hand-overs in memory in a row while other sessions may wait. Default
	// 0: as many as fit into the time slice. -1 switches off hand-over, the runs of a fairlock, and
	// the read holds that readers of a session share.
	HandOverLimit int
	// Polling makes waiters look by the clock, for sessions that may not subscribe: a refused waiter
	// sleeps as the Backoff says, or until the lease ends if that is sooner; [Limit] ends a Lock with
	// [ErrNotAcquired]. docs/operations.md says what else comes later. Default nil: waiters listen.
	Polling Backoff
	// Label is what operators see beside this session's locks, at most 200 bytes of UTF-8, in Redis
	// under "relock_session:<session id>" while the session lives. Default "<host>:<pid>".
	Label string
	// Logger hears what no error can tell a caller: lost locks, deadlocks, releases that were never
	// confirmed, refused subscriptions, outages. docs/operations.md lists it. Default: the warnings and errors
	// of that to [slog.Default]. To hear nothing, give one with [slog.DiscardHandler].
	Logger *slog.Logger
	Trace  *Trace // hooks for metrics and tests; default none
}

// maxLabel bounds Config.Label, which operators see in a table.
const maxLabel = 200

// checked returns c as the machine takes it: with its zero fields filled in, or ErrConfig that
// names the first bad field.
func (c Config) checked() (engine.Config, error) {
	for _, f := range []struct {
		name string
		d    *time.Duration
		def  time.Duration
	}{
		{"Lease", &c.Lease, DefaultLease},
		{"ReleaseTimeout", &c.ReleaseTimeout, DefaultReleaseTimeout},
		{"PollFloor", &c.PollFloor, DefaultPollFloor},
		{"QueueLease", &c.QueueLease, DefaultQueueLease},
		{"RedissonWatchdog", &c.RedissonWatchdog, DefaultRedissonWatchdog},
		{"ReplicaTimeout", &c.ReplicaTimeout, DefaultReplicaTimeout},
	} {
		switch {
		case *f.d == 0:
			*f.d = f.def
		case *f.d < time.Millisecond || *f.d > api.Longest:
			return engine.Config{}, fmt.Errorf("%w: %s is %v; it must be at least 1ms and at most %v, or 0 for the default of %v",
				ErrConfig, f.name, *f.d, api.Longest, f.def)
		}
	}
	switch {
	case c.Replicas < 0:
		return engine.Config{}, fmt.Errorf("%w: Replicas is %d; it must be how many replicas acknowledge an acquisition, or 0 for none", ErrConfig, c.Replicas)
	case c.HandOverLimit < -1:
		return engine.Config{}, fmt.Errorf("%w: HandOverLimit is %d; it must be positive, 0 for no bound but the time slice, or -1 for no hand-overs",
			ErrConfig, c.HandOverLimit)
	case len(c.Label) > maxLabel: // what is too long for a table is too long for a log
		return engine.Config{}, fmt.Errorf("%w: Label has %d bytes; it must have at most %d", ErrConfig, len(c.Label), maxLabel)
	case !utf8.ValidString(c.Label):
		return engine.Config{}, fmt.Errorf("%w: Label is %s; it must be UTF-8", ErrConfig, api.Quote(c.Label))
	}
	if c.Label == "" {
		c.Label = defaultLabel()
	}
	if c.Logger == nil {
		c.Logger = slog.New(warnings{slog.Default().Handler()})
	}
	return engine.Config(c), nil
}

// warnings hands on what an operator who has not asked for a log must hear.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// defaultLabel is "<host>:<pid>".
func defaultLabel() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}
