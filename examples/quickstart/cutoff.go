// This file cuts a holder off from Redis and looks who is where when.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"relock/examples/internal/demo"
	"relock/locktrace"
	"relock/rlock"
)

// cutOff is what happened, in times since the first holder had the lock.
type cutOff struct {
	lease   time.Duration
	cut     time.Duration // the first holder's network was cut
	ended   time.Duration // the first holder's context ended
	expires time.Duration // Redis kept the lock for it until then
	entered time.Duration // the next holder had the lock

	together bool  // the first holder's context had not ended when the next one entered
	cause    error // with which it ended
	unlock   error // what the first holder's Unlock returned, later
	intact   bool  // the next holder still had the lock after that
}

// check returns what must not have happened.
func (c cutOff) check() error {
	switch {
	case c.together || c.ended < c.cut || c.entered < c.ended:
		return fmt.Errorf("wrong order: cut at %v, context ended at %v, next one entered at %v", c.cut, c.ended, c.entered)
	case !errors.Is(c.cause, rlock.ErrLost):
		return fmt.Errorf("the cut-off holder's context ended with the cause %w, not with ErrLost", c.cause)
	case !errors.Is(c.unlock, rlock.ErrLost):
		return fmt.Errorf("the cut-off holder's Unlock returned %w, not ErrLost", c.unlock)
	case !c.intact:
		return errors.New("the cut-off holder's Unlock disturbed the next holder")
	}
	return nil
}

// cutOffHolder lets a first session take the lock, cuts its network, and lets a next
// one wait for the lock meanwhile.
func cutOffHolder(ctx context.Context, redis *demo.Redis, lease time.Duration) (res cutOff, err error) {
	wire := new(demo.Wire)
	first, renewed, err := openHolder(ctx, redis, wire, lease)
	if err != nil {
		return res, err
	}
	defer func() { wire.Mend(); err = errors.Join(err, first.Close()) }()
	next, err := rlock.Dial(ctx, redis.Option, rlock.Config{Lease: lease})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, next.Close()) }()

	res.lease = lease
	mutex := func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, redis.Prefix+"cut-off") }
	section, hold, err := mutex(first).Lock(ctx)
	if err != nil {
		return res, err
	}
	start := time.Now()
	ended := make(chan time.Duration, 1)
	context.AfterFunc(section, func() { ended <- time.Since(start) })

	// The first renewal shows that the lock is kept for as long as the network works.
	// The cut comes a little later, between two renewals.
	if err := waitFor(section, renewed, lease/8); err != nil {
		return res, err
	}
	state, err := mutex(next).State(ctx)
	if err != nil {
		return res, err
	}
	wire.Cut()
	res.cut = time.Since(start)
	res.expires = res.cut + state.TTL

	_, nextHold, err := mutex(next).Lock(ctx)
	if err != nil {
		return res, err
	}
	res.entered = time.Since(start)
	res.together = section.Err() == nil
	res.ended = min(res.entered, <-ended) // its goroutine may have been late
	res.cause = context.Cause(section)

	// The network is back, and what was held back arrives. Close waits for that.
	wire.Mend()
	res.unlock = hold.Unlock()
	if err := first.Close(); err != nil {
		return res, err
	}
	state, err = mutex(next).State(ctx)
	res.intact = len(state.Owners) == 1 && state.Owners[nextHold.Owner()] == 1
	return res, errors.Join(err, nextHold.Unlock())
}

// openHolder opens a session whose network is wire, and which tells of its renewals.
func openHolder(ctx context.Context, redis *demo.Redis, wire *demo.Wire, lease time.Duration) (*rlock.Session, <-chan struct{}, error) {
	renewed := make(chan struct{}, 1)
	session, err := rlock.Dial(ctx, wire.Through(redis.Option), rlock.Config{
		Lease:  lease,
		Logger: slog.New(slog.DiscardHandler), // it would warn of what is shown here
		Trace: &rlock.Trace{Renewed: func(locktrace.Renewed) {
			select {
			case renewed <- struct{}{}:
			default: // hooks must not block
			}
		}},
	})
	return session, renewed, err
}

// waitFor waits for the signal and then for d longer, or for the end of ctx.
func waitFor(ctx context.Context, signal <-chan struct{}, d time.Duration) error {
	select {
	case <-signal:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
