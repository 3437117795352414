package report

import (
	"context"
	"sync/atomic"
	"time"

	"relock/locktrace"
)

// A Tracer calls the hooks of one session. All methods of a nil Tracer do nothing; but what a Call or a Hold
// is asked for needs a Tracer.
type Tracer struct {
	hooks   *locktrace.Trace
	clock   func() time.Duration
	waiting atomic.Int64 // callers that the hooks were told wait
}

// NewTracer returns the Tracer of a session; nil without hooks. These are as [Guard] makes them.
func NewTracer(hooks *locktrace.Trace, clock func() time.Duration) *Tracer {
	if hooks == nil {
		return nil
	}
	return &Tracer{hooks: hooks, clock: clock}
}

// About is what events tell of a lock and its owner.
type About struct {
	Name, Kind, Owner string
	N                 int
}

// A Call is what the hooks are told of one Lock beside that. The caller sets the exported fields,
// before AcquireEnd.
type Call struct {
	Grant    locktrace.Grant // AcquireStart sets it to GrantRedis
	Attempts int
	Holds    int // 0 counts as 1
	Nested   bool

	ctx    context.Context // of AcquireStart
	began  time.Duration
	waited bool
	hold   *Hold // that it got
}

// AcquireStart begins a call that has good arguments.
func (t *Tracer) AcquireStart(ctx context.Context, c *Call, a About, try bool) {
	*c = Call{ctx: ctx, began: t.clock(), Grant: locktrace.GrantRedis}
	c.ctx = t.hooks.AcquireStart(ctx, locktrace.AcquireStart{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Try: try})
}

// Waiting notes that the caller waits for a release; what it waits for again counts once.
func (t *Tracer) Waiting(c *Call, a About) {
	if t == nil || c.waited {
		return
	}
	c.waited = true
	queue := t.waiting.Add(1)
	t.hooks.Waiting(c.ctx, locktrace.Waiting{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Queue: int(queue)})
}

// AcquireEnd ends the call, and begins its hold if it got one. ctx is that of AcquireStart.
func (t *Tracer) AcquireEnd(ctx context.Context, c *Call, a About, outcome locktrace.Outcome, hold bool, err error) {
	queue := t.waiting.Load()
	if c.waited {
		queue = t.waiting.Add(-1)
	}
	e := locktrace.AcquireEnd{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Outcome: outcome,
		Nested: c.Nested, Waited: c.waited, Attempts: c.Attempts, Wait: t.clock() - c.began, Queue: int(queue), Err: err}
	if err == nil {
		e.Grant, e.Holds = c.Grant, max(c.Holds, 1)
	}
	if hold { // deferred, since the hook may end the goroutine
		defer c.hold.start(ctx, locktrace.HoldStart{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Nested: c.Nested})
	}
	t.hooks.AcquireEnd(c.ctx, e)
}

// Attempt tells of the answer to an acquire script, or its lack.
func (t *Tracer) Attempt(a About, granted bool, err error) {
	if t != nil {
		t.hooks.Attempt(locktrace.Attempt{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Granted: granted, Err: err})
	}
}

// HandedOver tells of a hand-over in memory.
func (t *Tracer) HandedOver(a About) {
	if t != nil {
		t.hooks.HandedOver(locktrace.HandedOver(a))
	}
}

// Renewed tells of a renewal.
func (t *Tracer) Renewed(e locktrace.Renewed) {
	if t != nil {
		t.hooks.Renewed(e)
	}
}

// Lost tells of a loss.
func (t *Tracer) Lost(e locktrace.Lost) {
	if t != nil {
		t.hooks.Lost(e)
	}
}

// Subscription tells of a change of a subscription's state.
func (t *Tracer) Subscription(e locktrace.Subscription) {
	if t != nil {
		t.hooks.Subscription(e)
	}
}

// Kept tells of a lock that may be kept.
func (t *Tracer) Kept(e locktrace.Kept) {
	if t != nil {
		t.hooks.Kept(e)
	}
}

// Line tells of a message to a session that stands in a line.
func (t *Tracer) Line(e locktrace.Line) {
	if t != nil {
		t.hooks.Line(e)
	}
}
