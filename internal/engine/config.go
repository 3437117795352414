package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"relock/locktrace"
)

// maxLabel bounds Config.Label, which operators see in a table.
const maxLabel = 200

// The defaults of Config; package rlock documents them.
const (
	DefaultLease            = 30 * time.Second
	DefaultReleaseTimeout   = 5 * time.Second
	DefaultPollFloor        = 2 * time.Second
	DefaultQueueLease       = 5 * time.Second
	DefaultRedissonWatchdog = 30 * time.Second
	DefaultReplicaTimeout   = time.Second
)

// Config is how a Session behaves; package rlock documents it.
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
	Polling          Backoff
	Label            string
	Logger           *slog.Logger
	Trace            *locktrace.Trace
}

// WithDefaults returns c with its zero fields filled in, or ErrConfig that names the first
// bad field.
func (c Config) WithDefaults() (Config, error) {
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
		case *f.d < time.Millisecond || *f.d > longest:
			return c, fmt.Errorf("%w: %s is %v; it must be at least 1ms and at most %v, or 0 for the default of %v",
				ErrConfig, f.name, *f.d, longest, f.def)
		}
	}
	if c.Replicas < 0 {
		return c, fmt.Errorf("%w: Replicas is %d; it must be how many replicas acknowledge an acquisition, or 0 for none", ErrConfig, c.Replicas)
	}
	if c.HandOverLimit < -1 {
		return c, fmt.Errorf("%w: HandOverLimit is %d; it must be positive, 0 for no bound but the time slice, or -1 for no hand-overs",
			ErrConfig, c.HandOverLimit)
	}
	if len(c.Label) > maxLabel || !utf8.ValidString(c.Label) {
		return c, fmt.Errorf("%w: Label is %s; it must be at most %d bytes of UTF-8", ErrConfig, Quote(c.Label), maxLabel)
	}
	if c.Label == "" {
		c.Label = defaultLabel()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// LockOption is an option of one Lock, TryLock or Do.
type LockOption func(*lockOptions)

type lockOptions struct {
	wait    time.Duration
	hasWait bool
	lease   time.Duration // fixed lease; 0: the watchdog renews
	retry   Backoff       // of a TryLock; nil: it asks once

	keeps context.Context // see Keeps

	err error
}

// Wait bounds the waiting of one Lock.
func Wait(d time.Duration) LockOption {
	return func(o *lockOptions) {
		if d < 0 && o.err == nil {
			o.err = fmt.Errorf("%w: Wait(%v); it must be 0 (do not wait) or positive", ErrArgument, d)
		}
		o.wait, o.hasWait = d, true
	}
}

// Lease gives one acquisition a fixed lease.
func Lease(d time.Duration) LockOption {
	return func(o *lockOptions) {
		if (d < time.Millisecond || d > longest) && o.err == nil {
			o.err = fmt.Errorf("%w: Lease(%v); it must be at least 1ms and at most %v", ErrArgument, d, longest)
		}
		o.lease = d
	}
}

// collect applies opts. Only calls with options pay for them: the result is on the heap.
func collect(opts []LockOption) (lockOptions, error) {
	var o lockOptions
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: a nil LockOption", ErrArgument)
		}
		opt(&o)
	}
	return o, o.err
}

// Patience returns how long a Lock with these options may wait, never if without bound.
func Patience(opts []LockOption) time.Duration {
	if o, err := collect(opts); err == nil && o.hasWait {
		return o.wait
	}
	return never
}

// longest is the longest duration that is taken, a hundred years: long enough, and far
// enough from where sums of durations overflow.
const longest = 100 * 365 * 24 * time.Hour

// never is a point of time that does not come.
const never = time.Duration(1<<63 - 1)
