package report

import (
	"context"
	"errors"
	"sync"
	"time"

	"relock/internal/api"
	"relock/locktrace"
)

// A Hold is one hold as the hooks see it. It begins behind AcquireEnd, in the goroutine of the
// caller, and may have ended by then in another one: then its end is told behind its beginning.
type Hold struct {
	t *Tracer

	mu    sync.Mutex
	ctx   context.Context // of HoldStart; nil until that has returned
	about locktrace.HoldStart
	began time.Duration
	held  time.Duration
	why   locktrace.HoldReason // "" while the hold stands
}

// NewHold returns the hold that a call has got. AcquireEnd begins it.
func (t *Tracer) NewHold(c *Call) *Hold {
	c.hold = &Hold{t: t}
	return c.hold
}

// start tells that the hold begins, and that it has ended if it has meanwhile. A hook that ends the goroutine counts as one
// that has returned nothing.
func (d *Hold) start(ctx context.Context, e locktrace.HoldStart) {
	began := d.t.clock()
	defer func() {
		d.mu.Lock()
		d.ctx, d.about, d.began = ctx, e, began
		ended := d.why != ""
		d.mu.Unlock()
		if ended {
			d.Tell()
		}
	}()
	ctx = d.t.Hooks.HoldStart(ctx, e)
}

// End notes why the hold has ended, and when, once. It reports whether Tell is to be called: not
// if it is noted already, nor before the hold has begun. It runs no hook.
func (d *Hold) End(why locktrace.HoldReason, at time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why != "" {
		return false
	}
	d.why = why
	if d.ctx != nil {
		d.held = at - d.began
	}
	return d.ctx != nil
}

// Tell tells that the hold has ended.
func (d *Hold) Tell() {
	e := d.about
	d.t.Hooks.HoldEnd(d.ctx, locktrace.HoldEnd{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N, Nested: e.Nested, Reason: d.why, Held: d.held})
}

// Left tells of the end of a hold by a call that was for that, and that began at a time and returned
// err. A nil Hold tells nothing.
func (d *Hold) Left(why locktrace.HoldReason, at time.Duration, err error) {
	switch {
	case d == nil, err == api.ErrNotHeld: // another call has ended it
		return
	case errors.Is(err, api.ErrLost):
		why = locktrace.HoldLost
	case errors.Is(err, api.ErrClosed):
		why = locktrace.HoldClosed
	}
	if d.End(why, at) {
		d.Tell()
	}
}

// ReleaseStart tells that a release of the hold is about to be sent, and returns what tells of its
// end: its error, and whether it found nothing to release. If the hook ends the goroutine, quit is called, and the end is
// told, with ErrQuit.
func (d *Hold) ReleaseStart(quit func()) (end func(err error, gone bool)) {
	hooks, e, began := d.t.Hooks, d.about, d.t.clock()
	ctx, returned := d.ctx, false
	end = func(err error, gone bool) {
		if gone && err == nil {
			err = api.ErrLost
		}
		hooks.ReleaseEnd(ctx, locktrace.ReleaseEnd{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N, Took: d.t.clock() - began, Err: err})
	}
	defer func() {
		if !returned {
			quit()
			end(ErrQuit, false)
		}
	}()
	ctx = hooks.ReleaseStart(ctx, locktrace.ReleaseStart{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N})
	returned = true
	return end
}

// ErrQuit is what the hooks hear of a call whose goroutine one of them has ended, as t.FailNow does.
var ErrQuit = errors.New("rlock: a hook has ended the goroutine of the call")
