package report

import (
	"context"
	"sync/atomic"
	"time"

	"relock/locktrace"
)

// A Tracer calls the hooks of one session. Those whose events need nothing but what the session knows, as that of a loss,
// the session calls itself.
type Tracer struct {
	Hooks   *locktrace.Trace
	clock   func() time.Duration
	waiting atomic.Int64 // callers that the hooks were told wait
}

// NewTracer returns the Tracer of a session; nil without hooks. These are as [Guard] makes them.
func NewTracer(hooks *locktrace.Trace, clock func() time.Duration) *Tracer {
	if hooks == nil {
		return nil
	}
	return &Tracer{Hooks: hooks, clock: clock}
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
	c.ctx = t.Hooks.AcquireStart(ctx, locktrace.AcquireStart{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Try: try})
}

// Waiting notes that the caller waits for a release; what it waits for again counts once.
func (t *Tracer) Waiting(c *Call, a About) {
	if c.waited {
		return
	}
	c.waited = true
	queue := t.waiting.Add(1)
	t.Hooks.Waiting(c.ctx, locktrace.Waiting{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Queue: int(queue)})
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
	t.Hooks.AcquireEnd(c.ctx, e)
}

// Attempt tells of the answer to an acquire script, or its lack.
func (t *Tracer) Attempt(a About, granted bool, err error) {
	t.Hooks.Attempt(locktrace.Attempt{Name: a.Name, Kind: a.Kind, Owner: a.Owner, N: a.N, Granted: granted, Err: err})
}
