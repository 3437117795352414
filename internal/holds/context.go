package holds

import (
	"context"
	"sync/atomic"
	"time"

	"relock/internal/api"
)

// A Context ends with its parent, or by End. It is safe for concurrent use, but for Parent.
type Context struct {
	Parent context.Context // set before the first use
	made   atomic.Pointer[cancellation]
	ended  atomic.Int32 // an Ending
}

// An Ending is why a section has ended; 0 while it is open.
type Ending int32

const (
	Released Ending = iota + 1
	Lost
	Closed
	LostAndUnlocked // lost, and all its holds have been unlocked since
)

// Cause returns what an Ending is to the section's contexts.
func (e Ending) Cause() error {
	return [...]error{nil, api.ErrReleased, api.ErrLost, api.ErrClosed, api.ErrLost}[e]
}

// A cancellation is what can be cancelled of a Context.
type cancellation struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Ended returns why End was called; 0 if it was not.
func (x *Context) Ended() Ending { return Ending(x.ended.Load()) }

// HasEnded reports whether End was called.
func (x *Context) HasEnded() bool { return x.ended.Load() != 0 }

// End notes why the section has ended, and reports whether there is something that Cancel has to cancel.
// It runs no code of the caller's.
func (x *Context) End(why Ending) (asked bool) {
	x.ended.Store(int32(why))
	return x.made.Load() != nil
}

// Cancel cancels what was made for a section that has ended. It runs code of the caller's contexts.
func (x *Context) Cancel() {
	if m := x.made.Load(); m != nil {
		m.cancel(x.Ended().Cause())
	}
}

// Make makes what can be cancelled, if it has not been made. It runs code of the caller's context.
func (x *Context) Make() context.Context {
	m := x.made.Load()
	if m == nil {
		m = new(cancellation)
		m.ctx, m.cancel = context.WithCancelCause(x.Parent)
		if !x.made.CompareAndSwap(nil, m) {
			m.cancel(nil)
			m = x.made.Load()
		}
	}
	if e := x.Ended(); e != 0 {
		m.cancel(e.Cause()) // the section ended before there was anything to cancel
	}
	return m.ctx
}

// Deadline is for [context.Context], as the other methods below.
func (x *Context) Deadline() (time.Time, bool) { return x.Parent.Deadline() }

// Done makes what can be cancelled.
func (x *Context) Done() <-chan struct{} { return x.Make().Done() }

// Err makes what can be cancelled if it is not nil.
func (x *Context) Err() error {
	if x.made.Load() == nil && !x.HasEnded() && x.Parent.Err() == nil {
		return nil
	}
	// Made now, so that the first reason stays the reason.
	return x.Make().Err()
}

// Value returns a value of the parent.
func (x *Context) Value(key any) any {
	if key == CancelKey { // context.Cause, and the children of this context
		return x.Make().Value(key)
	}
	return x.Parent.Value(key)
}
