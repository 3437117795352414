package api

import (
	"context"
	"fmt"
	"time"

	"relock/internal/clock"
)

// Longest is the longest duration that is taken, a hundred years: long enough, and far
// enough from where sums of durations overflow.
const Longest = 100 * 365 * 24 * time.Hour

// Alone reports whether what is acquired is for this one caller, and not handed over in memory.
func (o *Options) Alone() bool { return o.Lease > 0 || o.AtLeast > 0 }

// Option is one option.
type Option func(*Options)

// Options are what the options of one Lock say together.
type Options struct {
	Wait    time.Duration   // if Bounded: how long it may wait
	Bounded bool            // Wait was given
	Lease   time.Duration   // fixed lease; 0: the watchdog renews
	AtLeast time.Duration   // for how long the lock stands, also if it is unlocked before
	Retry   clock.Backoff   // nil: no series of attempts
	Keeps   context.Context // see [Keeps]
	Async   bool            // the release at the end of a Do is not waited for

	inDo bool // the call is a Do

	err error // of the first bad option
}

// Collect applies opts. On error the Options are empty. Errors: [ErrArgument]. Only calls
// with options pay for them: the result is on the heap.
func Collect(opts []Option) (Options, error) {
	var o Options
	for _, opt := range opts {
		if opt == nil {
			return Options{}, fmt.Errorf("%w: a nil LockOption", ErrArgument)
		}
		opt(&o)
	}
	if o.AtLeast > o.Lease && o.Lease > 0 {
		o.bad(fmt.Sprintf("AtLeast(%v) with Lease(%v); a lock cannot stand for longer than its lease", o.AtLeast, o.Lease))
	}
	if o.Async && !o.inDo {
		o.bad("AsyncRelease; it is an option of Do. Use UnlockAsync or ReleaseAsync to end what a Lock or Acquire has got")
	}
	if o.err != nil {
		return Options{}, o.err
	}
	return o, nil
}

// bad keeps the error of the first bad option.
func (o *Options) bad(text string) {
	if o.err == nil {
		o.err = fmt.Errorf("%w: %s", ErrArgument, text)
	}
}

// Wait bounds the waiting of one Lock.
func Wait(d time.Duration) Option {
	return func(o *Options) {
		if d < 0 {
			o.bad(fmt.Sprintf("Wait(%v); it must be 0 (do not wait) or positive", d))
		}
		o.Wait, o.Bounded = d, true
	}
}

// Lease gives one acquisition a fixed lease.
func Lease(d time.Duration) Option {
	return func(o *Options) {
		if d < time.Millisecond || d > Longest {
			o.bad(fmt.Sprintf("Lease(%v); it must be at least 1ms and at most %v", d, Longest))
		}
		o.Lease = d
	}
}

// AtLeast leaves the lock standing for a while if it is unlocked soon.
func AtLeast(d time.Duration) Option {
	return func(o *Options) {
		if d < time.Millisecond || d > Longest {
			o.bad(fmt.Sprintf("AtLeast(%v); it must be at least 1ms and at most %v", d, Longest))
		}
		o.AtLeast = d
	}
}

// Retry makes one Lock a series of attempts, without a place in a queue.
func Retry(b clock.Backoff) Option {
	return func(o *Options) {
		if b == nil {
			o.bad("Retry(nil); name a Backoff, as Linear(50*time.Millisecond)")
		}
		o.Retry = b
	}
}

// Keeps is for a Lock whose caller gives up, when the wait lasts, what it holds beyond the sections
// of ctx: only those make it a part of a deadlock, and have Shutdown let it wait. What it gives up does not stand for an
// AtLeast.
func Keeps(ctx context.Context) Option { return func(o *Options) { o.Keeps = ctx } }

// Async has a Do not wait for the answer to its release.
func Async() Option { return func(o *Options) { o.Async = true } }

// OfDo returns the options of a Do, for its acquisition, and whether its release is not waited for. It asks for
// nothing if there are none.
func OfDo(opts []Option) (all []Option, async bool) {
	if len(opts) == 0 {
		return nil, false
	}
	var o Options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.Async {
		opts = append(opts[:len(opts):len(opts)], func(o *Options) { o.inDo = true })
	}
	return opts, o.Async
}
