package main

import (
	"context"
	"errors"
	"time"

	"relock/rlock"
)

// maxExtension bounds by how much --abandon can keep the lock longer than the command runs.
const maxExtension = 10 * time.Second

// extension is by how much the lease of an abandoned lock moves while the command runs on
// beyond it.
func (r *runner) extension() time.Duration {
	return min(max(r.flags.lease, 3*time.Millisecond), maxExtension)
}

// keepLease moves the end of an abandoned lock's lease away while the command outlasts it, in
// a goroutine of its own. It returns how to stop that.
func (r *runner) keepLease() (stop func()) {
	if !r.flags.abandon {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.held.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		step := r.extension()
		ticker := time.NewTicker(step / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if r.held.remaining() > step*2/3 {
				continue
			}
			if err := r.held.extend(ctx, step); err != nil && ctx.Err() == nil {
				r.say.problem("extend", "the lease could not be extended", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// letGo releases the lock. With --abandon it stays until its interval is over, counted from
// when it was acquired; it may have been extended beyond.
func (r *runner) letGo() error {
	rest := r.flags.lease - time.Since(r.began)
	if !r.flags.abandon || rest < time.Millisecond {
		return r.held.release()
	}
	ctx, cancel := context.WithTimeout(context.Background(), rlock.DefaultReleaseTimeout)
	defer cancel()
	var moved error
	if r.held.extended {
		moved = r.held.extend(ctx, rest)
	}
	return errors.Join(moved, r.held.abandon())
}
