package engine

import (
	"time"

	"relock/internal/holds"
	"relock/internal/tracing"
	"relock/locktrace"
	"relock/pubsub"
)

// Hooks are called outside of every mutex, and never in the watchdog. Session.trace is nil without
// a Trace.

// about is what the hooks are told of a lock and an owner. That of an acquisition's claim is told only
// when the caller has it, or waits for it.
func about(p Primitive, owner string, n int) tracing.About {
	return tracing.About{Name: p.Names().Name(), Kind: p.Kind().HookName(), Owner: owner, N: max(n, 1)}
}

// traceWaiting tells the hooks that the caller waits, by a claim if it has one.
func (a *acquisition) traceWaiting(c *claim) {
	if t := a.lock.s.trace; t != nil {
		owner := a.named
		if c != nil {
			owner = c.ownerID()
		}
		t.Waiting(&a.traced, about(a.prim, owner, a.n))
	}
}

// traceEnd tells the hooks, of which there are some, that the call ends, and that its hold begins
// if it got one.
func (a *acquisition) traceEnd(t *tracing.Tracer, hold *Hold, err error) {
	owner := a.named
	if hold != nil {
		owner = hold.Owner()
	}
	t.AcquireEnd(a.ctx, &a.traced, about(a.prim, owner, a.n), tracing.OutcomeOf(err, !a.wait), hold != nil, err)
}

func (c *claim) about() tracing.About { return about(c.prim, c.ownerID(), int(c.n)) }

// traceAttempt tells the hooks, of which there are some, of an answer to an attempt, or its lack.
func (c *claim) traceAttempt(g grant, err error) {
	c.lock.s.trace.Attempt(c.about(), err == nil && g.Status == granted, err)
}

// traceHandedOver tells the hooks that the claim was passed on in memory.
func (c *claim) traceHandedOver() {
	if t := c.lock.s.trace; t != nil {
		t.HandedOver(c.about())
	}
}

// subscriptionChanged is called under the hub's mutex.
func (s *Session) subscriptionChanged(e pubsub.Event) {
	if t := s.trace; t != nil {
		state := [...]locktrace.SubscriptionState{locktrace.SubscriptionConnected, locktrace.SubscriptionLost, locktrace.SubscriptionClosed, locktrace.SubscriptionRefused}[e.State]
		s.notes.AddSurely(func() { t.Subscription(locktrace.Subscription{State: state, Node: e.Node, Err: e.Err}) })
	}
}

// trace has the hooks, of which there are some, follow a hold of the section. While the hold
// stands it is in holds.Nested.Traces; what takes it out of there, under the lock's mutex, decides how
// the hold ends. The lock's mutex must be held.
func (x *section) trace(h *Hold, a *acquisition) {
	m := x.holds.NeedNested()
	if m.Traces == nil {
		m.Traces = map[*holds.Hold]*tracing.Hold{}
	}
	m.Traces[&h.held] = x.claim.lock.s.trace.NewHold(&a.traced)
}

// endTrace notes that a hold has ended otherwise than by an Unlock. The lock's mutex must be
// held.
func (x *section) endTrace(h *holds.Hold, why locktrace.HoldReason) {
	if x.holds.Nested == nil || x.holds.Nested.Traces[h] == nil {
		return
	}
	d, s := x.holds.Nested.Traces[h], x.claim.lock.s
	delete(x.holds.Nested.Traces, h)
	if d.End(why, s.now()) {
		s.notes.AddSurely(d.Tell)
	}
}

// endTraces does so for all holds of a section that ends.
func (x *section) endTraces(why locktrace.HoldReason) {
	if x.holds.Nested == nil {
		return
	}
	for h := range x.holds.Nested.Traces {
		x.endTrace(h, why)
	}
}

// traced returns what the hooks follow the hold by, and the time: the hold is about to be
// unlocked. It is nil without a Trace, or when the hold has ended. No mutex may be held.
func (h *Hold) traced() (d *tracing.Hold, now time.Duration) {
	l := h.section.claim.lock
	if l.s.trace == nil {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.section.holds.Nested.Traces[&h.held], l.s.now()
}
