package rlock

import (
	"context"

	"relock/internal/engine"
)

// engine is t as the machine takes it.
func (t *Trace) engine() *engine.Trace {
	if t == nil {
		return nil
	}
	e := &engine.Trace{}
	if f := t.AcquireStart; f != nil {
		e.AcquireStart = func(ctx context.Context, e engine.AcquireStart) context.Context { return f(ctx, AcquireStart(e)) }
	}
	if f := t.Waiting; f != nil {
		e.Waiting = func(ctx context.Context, e engine.Waiting) { f(ctx, Waiting(e)) }
	}
	if f := t.AcquireEnd; f != nil {
		e.AcquireEnd = func(ctx context.Context, e engine.AcquireEnd) { f(ctx, AcquireEnd(e)) }
	}
	if f := t.HoldStart; f != nil {
		e.HoldStart = func(ctx context.Context, e engine.HoldStart) context.Context { return f(ctx, HoldStart(e)) }
	}
	if f := t.HoldEnd; f != nil {
		e.HoldEnd = func(ctx context.Context, e engine.HoldEnd) { f(ctx, HoldEnd(e)) }
	}
	if f := t.ReleaseStart; f != nil {
		e.ReleaseStart = func(ctx context.Context, e engine.ReleaseStart) context.Context { return f(ctx, ReleaseStart(e)) }
	}
	if f := t.ReleaseEnd; f != nil {
		e.ReleaseEnd = func(ctx context.Context, e engine.ReleaseEnd) { f(ctx, ReleaseEnd(e)) }
	}
	t.events(e)
	return e
}

// events sets the hooks that are no pairs.
func (t *Trace) events(e *engine.Trace) {
	if f := t.Attempt; f != nil {
		e.Attempt = func(e engine.Attempt) { f(Attempt(e)) }
	}
	if f := t.HandedOver; f != nil {
		e.HandedOver = func(e engine.HandedOver) { f(HandedOver(e)) }
	}
	if f := t.Lost; f != nil {
		e.Lost = func(e engine.Lost) { f(Lost(e)) }
	}
	if f := t.Renewed; f != nil {
		e.Renewed = func(e engine.Renewed) { f(Renewed(e)) }
	}
	if f := t.Subscription; f != nil {
		e.Subscription = func(e engine.Subscription) { f(Subscription(e)) }
	}
}
