package engine

import (
	"time"

	"relock/internal/waiting"
)

// hearRun takes in what a script says to a run that asks: it has the lock, or is called.
func (l *lock) hearRun(c *claim, m *waiting.Message) {
	switch {
	case m.Granted:
		l.letIn(c, m)
	case m.After == 0:
		c.run.SendNow()
		l.press()
	default:
		l.s.looks.Set(l, l.s.now()+m.After)
		l.s.schedule.WakeAt(l.s.now() + m.After)
	}
}

// letIn begins a run that Redis has let in, or asks, if the message cannot be trusted. A fixed
// lease begins now, and so needs a word with Redis, and so do replicas that are to acknowledge it.
func (l *lock) letIn(c *claim, m *waiting.Message) {
	r := c.run
	if joined := r.LetIn(m.Last, m.Position); joined != nil {
		joined.retire(finished)
	}
	g, ok := c.grantOf(m)
	if !ok || r.lease > 0 || l.s.cfg.Replicas > 0 {
		r.SendNow()
		l.press()
		return
	}
	if m.Token > 0 {
		c.needAccount().Exactly(m.Tokens)
	}
	l.begin(c, g, m.Last)
}

// begin opens the first section of a run that has the lock, for its waiters up to a number.
func (l *lock) begin(c *claim, g grant, until int64) {
	r := c.run
	r.Begin(until)
	a := r.next(l.s.now())
	if a == nil { // they have left, or the run was shorter than they thought
		c.end(nil)
		return
	}
	a.claim, a.op.ID = c, c.account.FirstID(c.kind)
	x := a.admit(g)
	r.Remove(&a.member)
	r.Tell()
	a.claim = nil
	l.dequeue(a)
	if g.unconfirmed > 0 && r.Waiting() == 0 {
		c.confirmLater(l.s.now(), g.unconfirmed)
	}
	a.deliver(x)
}

// next returns the waiter of a run that is served next; nil if there is none.
func (r *run) next(now time.Duration) *acquisition {
	return r.Next(func(a *acquisition) bool { return a.hopeless == nil && (a.deadline == 0 || now < a.deadline) })
}

// serveNext opens the next section of a run, or pauses it until a renewal has confirmed the claim;
// it reports false if the run has no waiter left or cannot go on.
func (l *lock) serveNext(c *claim, now time.Duration) bool {
	r := c.run
	a := r.next(now)
	switch {
	case a == nil || l.state != lockOpen || c.state != held || c.pinned || r.Kind == nil || now >= c.trust:
		return false
	case c.kind.Fenced && !c.account.HasToken():
		return false
	case !c.entrable(now):
		r.paused = true
		if c.stopped || c.renewAt != awaited {
			c.stopped, c.renewAt = false, now
			c.reschedule()
		}
		return true
	}
	r.Remove(&a.member)
	l.give(c, a, now)
	return true
}

// paused reports whether the claim is a run that waits for a renewal.
func (c *claim) paused() bool {
	b := c.lock.lobby
	return c.run != nil && c.run.paused || b != nil && b.place.Pause == c
}

// resume goes on with a run that a renewal has confirmed.
func (c *claim) resume(now time.Duration) {
	if c.state != held || !c.paused() {
		return
	}
	if c.run == nil {
		c.resumeInLine(now)
		return
	}
	c.run.paused = false
	switch l := c.lock; {
	case !l.serveNext(c, now):
		c.end(nil)
	case !c.run.paused:
		l.s.notify(c.traceHandedOver)
	}
}

// requeue ends a run, and makes a new one of the waiters that are left, if there are any.
func (l *lock) requeue(r *run) (made bool) {
	r.End()
	if r.Waiting() == 0 || l.state != lockOpen {
		return false
	}
	r.Replace(l.newRun(r.First().Of))
	return true
}

// leaveQueue sees to the waiters that a run leaves behind when its claim is about to be released.
// They queue before, so that no other comes in between. The lock's mutex must be held; it may be
// released meanwhile, and is held again at the end.
func (c *claim) leaveQueue() {
	l := c.lock
	if !l.requeue(c.run) || l.line.Sending { // then it goes with the next call, which may come too late
		l.press()
		return
	}
	calls := l.nextCalls()
	l.unlock()
	l.s.sendCalls(l.s.releaseLimit.At(l.s.now()), calls)
	l.mu.Lock()
	l.callsAnswered(calls)
}

// endRun sees to the waiters that a run leaves behind when its claim is retired.
func (l *lock) endRun(c *claim) {
	if c.flight == overtaken {
		c.flight = landed
		c.dismiss()
	}
	l.requeue(c.run)
	l.press()
	c.run.Tell()
}
