package multilock

import (
	"context"
	"errors"
	"time"

	"relock/internal/clock"
	"relock/rlock"
)

// series is a Lock with Retry: rounds of one attempt at each lock, with the sleeps of b in between.
// Any error but a refusal ends it.
func (t *try) series(ctx context.Context, b clock.Backoff) (context.Context, *Hold, error) {
	t.once, t.opts = true, nil // the locks are not told of Retry
	if t.lease > 0 {
		t.opts = append(t.opts, rlock.Lease(t.lease))
	}
	if t.atLeast > 0 {
		t.opts = append(t.opts, rlock.AtLeast(t.atLeast))
	}
	ends, stop := t.ends()
	defer stop()
	for n := 1; ; n++ {
		section, h, again, err := t.round(ctx, 0)
		if err == nil || !again || errors.Is(err, rlock.ErrUnavailable) {
			return section, h, err
		}
		d, more := b.Next(n)
		if !more || !t.deadline.IsZero() && time.Until(t.deadline) <= d {
			return nil, nil, over(ctx, err)
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-ends: // the next round finds whether the caller is turned away
		case <-ctx.Done():
		}
		if timer.Stop(); ctx.Err() != nil {
			return nil, nil, over(ctx, err)
		}
	}
}

// ends returns a channel that hears of sessions which begin to close or to shut down, until stop.
func (t *try) ends() (ends <-chan struct{}, stop func()) {
	heard := make(chan struct{}, 1)
	return heard, onEnd(t.locks, func() {
		select {
		case heard <- struct{}{}:
		default: // the next round finds both
		}
	})
}
