package election

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"relock/rlock"
)

// Callbacks are what an [Election.Run] calls. Each may be nil. They run in the goroutines that
// are named below, one call of each at a time, and Run returns when all of them have returned.
//
// A panic in OnStartedLeading or OnNewLeader ends the process, as any panic of a goroutine does; that of
// OnStartedLeading resigns first. A panic in OnStoppedLeading is one of Run.
type Callbacks struct {
	// OnStartedLeading runs in a goroutine of its own as soon as the candidate leads. Its ctx is that of
	// the leadership: it ends, with a cause ([context.Cause]), when the leadership is lost
	// ([rlock.ErrLost]), when the session closes or begins to shut down ([rlock.ErrClosed]), or with
	// Run's ctx. The leadership goes on when OnStartedLeading returns earlier.
	//
	// Warning: OnStartedLeading must return soon when its ctx has ended. Until then Run does not resign
	// and does not return. When Run's ctx has ended the leadership is not renewed any more, and another
	// process leads after Config.Lease at the latest, whether OnStartedLeading has returned or not.
	OnStartedLeading func(ctx context.Context)
	// OnStoppedLeading runs in Run's goroutine when Run returns, whatever it returns and whether it has
	// led or not: after OnStartedLeading has returned and the leadership has ended.
	OnStoppedLeading func()
	// OnNewLeader runs in a goroutine of its own, while Run campaigns and leads, for what
	// [Election.Observe] yields, in that order and never twice in a row for the same: each leader, this
	// candidate included, each new value, and the zero Leader when nobody leads any more. One that is slow
	// holds up nothing but Run's return, and misses leaders in between.
	OnNewLeader func(Leader)
}

// Run campaigns with value, leads, and returns when the leadership has ended. It does not campaign
// again. It is what LeaderElector.Run is in client-go.
//
// Run returns nil when ctx has ended: it has resigned then, or had not led. While OnStartedLeading
// takes its time to return after that, the leadership is kept, for a Config.Lease at most. The next
// candidate leads at once when Run has resigned.
//
// Errors: [rlock.ErrLost] after a loss, also of a leadership that ran out because OnStartedLeading had
// not returned; [rlock.ErrClosed] if the session closes, or begins to shut down
// ([rlock.Session.Shutdown] waits until Run has resigned); [rlock.ErrUnavailable] if ctx has
// ended and Redis did not confirm that the leadership has: that is tried again in the background until
// the lease is over. Else those of [Election.Campaign]. After any error the caller does not lead.
//
// Several calls of Run, of one handle or of many, are candidates that lead one after the other.
func (e *Election) Run(ctx context.Context, value string, c Callbacks) error {
	var following sync.WaitGroup
	defer following.Wait() // behind OnStoppedLeading, which a slow OnNewLeader does not hold up
	if c.OnStoppedLeading != nil {
		defer c.OnStoppedLeading()
	}
	if err := e.usable(ctx, "run"); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var section context.Context
	var l *Leadership
	err := e.follow(watching, c.OnNewLeader, &following)
	if err == nil {
		section, l, err = e.Campaign(ctx, value)
	}
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return nil // while it campaigned, or before
	}
	if err == nil {
		err = e.lead(ctx, section, l, c.OnStartedLeading)
	}
	if err != nil {
		err = fmt.Errorf("run: %w", err)
	}
	return err
}

// lead leads until ctx or the leadership ends, and resigns.
func (e *Election) lead(ctx, section context.Context, l *Leadership, started func(context.Context)) error {
	leading, end := context.WithCancelCause(section)
	defer end(nil)
	// Shutdown lets the section stand, so that there is no other leader before started has returned.
	stop := e.handle.Calls().OnEnd(func() { end(e.wrap("lead", rlock.ErrClosed)) })
	defer stop()
	returned := make(chan struct{})
	go func() {
		defer func() {
			if r := recover(); r != nil {
				_ = l.Resign() // what is not confirmed ends with its lease
				panic(r)
			}
			close(returned)
		}()
		if started != nil {
			started(leading)
		}
	}()
	<-leading.Done()
	<-returned
	if err := l.Resign(); err != nil {
		return err
	}
	if cause := context.Cause(leading); ctx.Err() == nil && errors.Is(cause, rlock.ErrClosed) {
		return cause
	}
	return nil
}

// follow calls fn, which may be nil, for each leader until ctx ends.
func (e *Election) follow(ctx context.Context, fn func(Leader), following *sync.WaitGroup) error {
	if fn == nil {
		return nil
	}
	leaders, err := e.Observe(ctx)
	if err != nil {
		return err
	}
	following.Go(func() {
		var last Leader
		for l := range leaders {
			if ctx.Err() == nil && l != last { // else it was not read in time, or what came in between was not
				last = l
				fn(l)
			}
		}
	})
	return nil
}
