package engine

import (
	"context"
	"errors"
	"time"

	"relock/pubsub"
)

// Trace are the hooks that package rlock documents. They are called outside of every mutex,
// and never by the watchdog. A nil Trace and nil hooks are harmless.
type Trace struct {
	AcquireStart func(ctx context.Context, e AcquireStart) context.Context
	Waiting      func(ctx context.Context, e Waiting)
	AcquireEnd   func(ctx context.Context, e AcquireEnd)
	HoldStart    func(ctx context.Context, e HoldStart) context.Context
	HoldEnd      func(ctx context.Context, e HoldEnd)
	ReleaseStart func(ctx context.Context, e ReleaseStart) context.Context
	ReleaseEnd   func(ctx context.Context, e ReleaseEnd)
	Attempt      func(e Attempt)
	HandedOver   func(e HandedOver)
	Lost         func(e Lost)
	Renewed      func(e Renewed)
	Subscription func(e Subscription)
}

// The events, as package rlock documents them. Each has a twin there with the same fields.
type (
	AcquireStart struct {
		Name, Kind, Owner string
		N                 int
		Try               bool
	}
	Waiting struct {
		Name, Kind, Owner string
		N                 int
		Queue             int
	}
	AcquireEnd struct {
		Name, Kind, Owner string
		N                 int
		Outcome           Outcome
		Grant             Grant
		Nested            bool
		Waited            bool
		Holds             int
		Attempts          int
		Wait              time.Duration
		Queue             int
		Err               error
	}
	HoldStart struct {
		Name, Kind, Owner string
		N                 int
		Nested            bool
	}
	HoldEnd struct {
		Name, Kind, Owner string
		N                 int
		Nested            bool
		Reason            HoldReason
		Held              time.Duration
	}
	ReleaseStart struct {
		Name, Kind, Owner string
		N                 int
	}
	ReleaseEnd struct {
		Name, Kind, Owner string
		N                 int
		Took              time.Duration
		Err               error
	}
	Attempt struct {
		Name, Kind, Owner string
		N                 int
		Granted           bool
		Err               error
	}
	HandedOver struct {
		Name, Kind, Owner string
		N                 int
	}
	Lost struct {
		Name, Kind, Owner string
		N                 int
		Reason            string
	}
	Renewed struct {
		Claims int
		Took   time.Duration
		Err    error
	}
	Subscription struct {
		State SubscriptionState
		Node  string
		Err   error
	}
)

// Outcome is how an acquire ended.
type Outcome string

// The outcomes.
const (
	OutcomeAcquired    Outcome = "acquired"
	OutcomeRefused     Outcome = "refused"
	OutcomeTimedOut    Outcome = "timeout"
	OutcomeCancelled   Outcome = "cancelled"
	OutcomeUnavailable Outcome = "unavailable"
	OutcomeClosed      Outcome = "closed"
	OutcomeFailed      Outcome = "failed"
)

// Grant is where a lock came from.
type Grant string

// The grants.
const (
	GrantRedis  Grant = "redis"
	GrantMemory Grant = "memory"
	GrantShared Grant = "shared"
)

// HoldReason is why a hold has ended.
type HoldReason string

// The reasons.
const (
	HoldReleased  HoldReason = "released"
	HoldLost      HoldReason = "lost"
	HoldClosed    HoldReason = "closed"
	HoldExpired   HoldReason = "expired"
	HoldAbandoned HoldReason = "abandoned"
)

// SubscriptionState is what has become of a subscription.
type SubscriptionState string

// The states.
const (
	SubscriptionConnected SubscriptionState = "connected"
	SubscriptionLost      SubscriptionState = "lost"
	SubscriptionClosed    SubscriptionState = "closed"
	SubscriptionRefused   SubscriptionState = "refused"
	SubscriptionPolling   SubscriptionState = "polling"
)

// traced is what an acquisition keeps for the hooks.
type traced struct {
	ctx      context.Context // of AcquireStart
	began    time.Duration
	attempts int
	holds    int
	waited   bool
	nested   bool
	grant    Grant
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
func (t *Trace) acquireStart(a *acquisition, s *Session) {
	a.traced = traced{ctx: a.ctx, began: s.now(), grant: GrantRedis}
	if t.AcquireStart != nil {
		a.traced.ctx = with(a.ctx, t.AcquireStart(a.ctx, AcquireStart{Name: a.prim.Names().Name(), Kind: a.prim.Kind().name(),
			Owner: a.named, N: max(a.n, 1), Try: !a.wait}))
	}
}

// waiting notes that the caller waits for a release; what it waits for again counts once.
func (t *Trace) waiting(a *acquisition) {
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
	t.Waiting(a.traced.ctx, Waiting{Name: a.prim.Names().Name(), Kind: a.prim.Kind().name(), Owner: owner, N: max(a.n, 1), Queue: int(queue)})
}

// acquireEnd ends the call, and begins the hold if it got one.
func (t *Trace) acquireEnd(a *acquisition, s *Session, hold *Hold, err error) {
	d := &a.traced
	queue := s.waiters.Load()
	if d.waited {
		queue = s.waiters.Add(-1)
	}
	e := AcquireEnd{Name: a.prim.Names().Name(), Kind: a.prim.Kind().name(), Owner: a.named, N: max(a.n, 1),
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
		d.hold.start(a.ctx, HoldStart{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N, Nested: e.Nested})
	}
}

// outcomeOf sorts the error of an acquire.
func outcomeOf(err error, try bool) Outcome {
	switch {
	case err == nil:
		return OutcomeAcquired
	case errors.Is(err, ErrClosed):
		return OutcomeClosed
	case errors.Is(err, ErrUnavailable):
		return OutcomeUnavailable
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return OutcomeTimedOut
	case errors.Is(err, ErrNotAcquired) && try:
		return OutcomeRefused
	case errors.Is(err, ErrNotAcquired):
		return OutcomeTimedOut
	}
	return OutcomeFailed
}

func (t *Trace) attempt(c *claim, granted bool, err error) {
	if t != nil && t.Attempt != nil {
		t.Attempt(Attempt{Name: c.prim.Names().Name(), Kind: c.prim.Kind().name(), Owner: c.ownerID(), N: max(int(c.n), 1),
			Granted: granted, Err: err})
	}
}

func (t *Trace) handedOver(c *claim) {
	if t != nil && t.HandedOver != nil {
		t.HandedOver(HandedOver{Name: c.prim.Names().Name(), Kind: c.prim.Kind().name(), Owner: c.ownerID(), N: max(int(c.n), 1)})
	}
}

func (t *Trace) renewed(n int, took time.Duration, err error) {
	if t != nil && t.Renewed != nil {
		t.Renewed(Renewed{Claims: n, Took: took, Err: err})
	}
}

func (t *Trace) lost(e Lost) {
	if t != nil && t.Lost != nil {
		t.Lost(e)
	}
}

func (t *Trace) subscription(e Subscription) {
	if t != nil && t.Subscription != nil {
		t.Subscription(e)
	}
}

// subscriptionChanged is called under the hub's mutex.
func (s *Session) subscriptionChanged(e pubsub.Event) {
	if t := s.cfg.Trace; t != nil && t.Subscription != nil {
		state := [...]SubscriptionState{SubscriptionConnected, SubscriptionLost, SubscriptionClosed, SubscriptionRefused}[e.State]
		s.notifySurely(func() { t.Subscription(Subscription{State: state, Node: e.Node, Err: e.Err}) })
	}
}
