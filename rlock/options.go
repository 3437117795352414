package rlock

import (
	"fmt"
	"log/slog"
	"time"
)

// The defaults of Config.
const (
	// DefaultLease is Redisson's lockWatchdogTimeout, so that a Java waiter sees
	// what it would see of a Java holder.
	DefaultLease = 30 * time.Second

	// DefaultReleaseTimeout leaves room for a Sentinel failover (about 2 s).
	DefaultReleaseTimeout = 5 * time.Second

	// DefaultPollFloor bounds how long a lost wake-up can cost; half a command a
	// second is what an idle waiter pays for it.
	DefaultPollFloor = 2 * time.Second

	// DefaultQueueLease is how long fairlock lets a silent waiter keep its place.
	DefaultQueueLease = 5 * time.Second

	// DefaultHandOverLimit bounds hand-overs in memory while others may wait.
	DefaultHandOverLimit = 128
)

// Config is how a Session behaves. The zero value is ready for use; a zero field
// stands for its default. Durations are rounded up to whole milliseconds where
// they go to Redis.
type Config struct {
	// ID is the session's id, the first half of its owners' ids. Default: a random
	// UUID. An id of one's own must not be in use by two sessions at a time.
	ID string

	// Prefix is put before every lock name. Default "".
	Prefix string

	// Lease is what the watchdog keeps every hold alive for, renewed every third
	// of it; so long a lock outlives a process that died. At least 1 ms. Default
	// 30 s.
	Lease time.Duration

	// ReleaseTimeout bounds one release, retries included, also when the caller's
	// context has ended. Default 5 s.
	ReleaseTimeout time.Duration

	// PollFloor: a waiter looks again after this long without a message. Default
	// 2 s.
	PollFloor time.Duration

	// QueueLease is how long a silent waiter of a fairlock keeps its place.
	// Default 5 s.
	QueueLease time.Duration

	// HandOverLimit is the number of hand-overs in memory in a row while others
	// may wait. Default 128; -1 turns hand-overs off,
	// and the sharing of read holds.
	HandOverLimit int

	// Logger hears of what the caller cannot be told by an error: lost locks,
	// releases that go on in the background, degraded subscriptions. Default: discard.
	Logger *slog.Logger

	// Trace has hooks for metrics and tests. Optional.
	Trace *Trace
}

// withDefaults returns c with its zero fields filled in, or ErrConfig that names
// the first bad field.
func (c Config) withDefaults() (Config, error) {
	for _, f := range []struct {
		name string
		d    *time.Duration
		def  time.Duration
	}{
		{"Lease", &c.Lease, DefaultLease},
		{"ReleaseTimeout", &c.ReleaseTimeout, DefaultReleaseTimeout},
		{"PollFloor", &c.PollFloor, DefaultPollFloor},
		{"QueueLease", &c.QueueLease, DefaultQueueLease},
	} {
		switch {
		case *f.d == 0:
			*f.d = f.def
		case *f.d < time.Millisecond || *f.d > longest:
			return c, fmt.Errorf("%w: %s is %v; it must be at least 1ms and at most %v, or 0 for the default of %v",
				ErrConfig, f.name, *f.d, longest, f.def)
		}
	}
	switch {
	case c.HandOverLimit == 0:
		c.HandOverLimit = DefaultHandOverLimit
	case c.HandOverLimit < -1:
		return c, fmt.Errorf("%w: HandOverLimit is %d; it must be positive, 0 for the default of %d, or -1 for no hand-overs",
			ErrConfig, c.HandOverLimit, DefaultHandOverLimit)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// MutexOption is an option of New.
type MutexOption func(*mutexOptions)

type mutexOptions struct{ fenced bool }

// Fenced makes every acquisition draw a fencing token, see [Hold.Token]. The token
// is drawn inside the acquire script, so it costs no further round trip. It is kept
// under Redisson's key of the RFencedLock, "redisson_lock_token:{name}", without
// a TTL. Use a name either fenced or not: an owner that entered it in another process
// without a token does not get one by re-entering.
func Fenced() MutexOption { return func(o *mutexOptions) { o.fenced = true } }

// LockOption is an option of one Lock, TryLock or Do.
type LockOption func(*lockOptions)

type lockOptions struct {
	wait    time.Duration
	hasWait bool
	lease   time.Duration // fixed lease; 0: the watchdog renews
	err     error
}

// Wait bounds the waiting of one Lock: after d it gives up with [ErrNotAcquired].
// 0 is one attempt without waiting, as TryLock; a negative d is [ErrArgument].
// Unlike a deadline on the context it does not bound the critical section.
func Wait(d time.Duration) LockOption {
	return func(o *lockOptions) {
		if d < 0 && o.err == nil {
			o.err = fmt.Errorf("%w: Wait(%v); it must be 0 (do not wait) or positive", ErrArgument, d)
		}
		o.wait, o.hasWait = d, true
	}
}

// Lease gives one acquisition a fixed lease: no watchdog renews it, and the hold
// ends d after it began, unless [Hold.Extend] moves the end. d is at least 1 ms
// (else [ErrArgument]) and is rounded up to whole milliseconds in Redis. A nested hold
// with a lease of its own has a section of its own, which ends with that hold.
func Lease(d time.Duration) LockOption {
	return func(o *lockOptions) {
		if (d < time.Millisecond || d > longest) && o.err == nil {
			o.err = fmt.Errorf("%w: Lease(%v); it must be at least 1ms and at most %v", ErrArgument, d, longest)
		}
		o.lease = d
	}
}

func collect(opts []LockOption) (lockOptions, error) {
	if len(opts) == 0 {
		return lockOptions{}, nil
	}
	var o lockOptions
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: a nil LockOption", ErrArgument)
		}
		opt(&o)
	}
	return o, o.err
}

// longest is the longest duration that is taken, a hundred years: long enough, and far
// enough from where sums of durations overflow.
const longest = 100 * 365 * 24 * time.Hour

// millis rounds d up to whole milliseconds, the unit of Redis.
func millis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
