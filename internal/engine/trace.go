package engine

import (
	"context"
	"errors"
	"time"

	"relock/locktrace"
	"relock/pubsub"
)

// A tracer calls the hooks of a locktrace.Trace, outside of every mutex, and never in the watchdog.
// A nil tracer and nil hooks are harmless.
type tracer locktrace.Trace

// traced is what an acquisition keeps for the hooks.
type traced struct {
	ctx      context.Context // of AcquireStart
	began    time.Duration
	attempts int
	holds    int
	waited   bool
	nested   bool
	grant    locktrace.Grant
	hold     *holdTrace // of the hold that it got
}

// with returns the context that a start hook has returned; one that returned nil keeps ctx.
func with(ctx, returned context.Context) context.Context {
	if returned == nil {
		return ctx
	}
	return returned
}

// acquireStart begins a call that has good arguments.
func (t *tracer) acquireStart(a *acquisition, s *Session) {
	a.traced = traced{ctx: a.ctx, began: s.now(), grant: locktrace.GrantRedis}
	if t.AcquireStart != nil {
		a.traced.ctx = with(a.ctx, t.AcquireStart(a.ctx, locktrace.AcquireStart{Name: a.prim.Names().Name(), Kind: a.prim.Kind().name(),
			Owner: a.named, N: max(a.n, 1), Try: !a.wait}))
	}
}

// waiting notes that the caller waits for a release; what it waits for again counts once.
func (t *tracer) waiting(a *acquisition) {
	if t == nil || a.traced.waited {
		return
	}
	a.traced.waited = true
	queue := a.lock.s.waiters.Add(1)
	if t.Waiting == nil {
		return
	}
	owner := a.named
	if a.claim != nil {
		owner = a.claim.ownerID()
	}
	t.Waiting(a.traced.ctx, locktrace.Waiting{Name: a.prim.Names().Name(), Kind: a.prim.Kind().name(), Owner: owner, N: max(a.n, 1), Queue: int(queue)})
}

// acquireEnd ends the call, and begins the hold if it got one.
func (t *tracer) acquireEnd(a *acquisition, s *Session, hold *Hold, err error) {
	d := &a.traced
	queue := s.waiters.Load()
	if d.waited {
		queue = s.waiters.Add(-1)
	}
	e := locktrace.AcquireEnd{Name: a.prim.Names().Name(), Kind: a.prim.Kind().name(), Owner: a.named, N: max(a.n, 1),
		Outcome: outcomeOf(err, !a.wait), Nested: d.nested, Waited: d.waited, Attempts: d.attempts,
		Wait: s.now() - d.began, Queue: int(queue), Err: err}
	if err == nil {
		e.Grant, e.Holds = d.grant, max(d.holds, 1)
	}
	if hold != nil {
		e.Owner = hold.Owner()
	}
	if t.AcquireEnd != nil {
		t.AcquireEnd(d.ctx, e)
	}
	if hold != nil {
		d.hold.start(a.ctx, locktrace.HoldStart{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N, Nested: e.Nested})
	}
}

// outcomeOf sorts the error of an acquire.
func outcomeOf(err error, try bool) locktrace.Outcome {
	switch {
	case err == nil:
		return locktrace.OutcomeAcquired
	case errors.Is(err, ErrClosed):
		return locktrace.OutcomeClosed
	case errors.Is(err, ErrDeadlock):
		return locktrace.OutcomeDeadlock
	case errors.Is(err, ErrUnavailable):
		return locktrace.OutcomeUnavailable
	case errors.Is(err, context.Canceled):
		return locktrace.OutcomeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return locktrace.OutcomeTimedOut
	case errors.Is(err, ErrNotAcquired) && try:
		return locktrace.OutcomeRefused
	case errors.Is(err, ErrNotAcquired):
		return locktrace.OutcomeTimedOut
	}
	return locktrace.OutcomeFailed
}

func (t *tracer) attempt(c *claim, granted bool, err error) {
	if t != nil && t.Attempt != nil {
		t.Attempt(locktrace.Attempt{Name: c.prim.Names().Name(), Kind: c.prim.Kind().name(), Owner: c.ownerID(), N: max(int(c.n), 1),
			Granted: granted, Err: err})
	}
}

func (t *tracer) handedOver(c *claim) {
	if t != nil && t.HandedOver != nil {
		t.HandedOver(locktrace.HandedOver{Name: c.prim.Names().Name(), Kind: c.prim.Kind().name(), Owner: c.ownerID(), N: max(int(c.n), 1)})
	}
}

func (t *tracer) renewed(n int, took time.Duration, err error) {
	if t != nil && t.Renewed != nil {
		t.Renewed(locktrace.Renewed{Claims: n, Took: took, Err: err})
	}
}

func (t *tracer) lost(e locktrace.Lost) {
	if t != nil && t.Lost != nil {
		t.Lost(e)
	}
}

func (t *tracer) subscription(e locktrace.Subscription) {
	if t != nil && t.Subscription != nil {
		t.Subscription(e)
	}
}

// subscriptionChanged is called under the hub's mutex.
func (s *Session) subscriptionChanged(e pubsub.Event) {
	if t := s.trace; t != nil && t.Subscription != nil {
		state := [...]locktrace.SubscriptionState{locktrace.SubscriptionConnected, locktrace.SubscriptionLost, locktrace.SubscriptionClosed, locktrace.SubscriptionRefused}[e.State]
		s.notifySurely(func() { t.Subscription(locktrace.Subscription{State: state, Node: e.Node, Err: e.Err}) })
	}
}
