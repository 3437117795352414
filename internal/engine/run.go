package engine

import (
	"fmt"
	"time"

	"relock/internal/redis"
	"relock/internal/waiting"
	"relock/locktrace"
)

// hearRun handles a message to a run that asks: the run has the lock, or is called. While an attempt is under
// way the message is kept until the answer. If the run has the lock, Redis is asked first if the message cannot be trusted,
// if the lease is fixed, since that begins now, and if replicas are to acknowledge the grant.
func (l *lock) hearRun(c *claim, m *waiting.Message) {
	r := c.run
	switch {
	case c.awaits == anAnswer:
		r.Message = m
		return
	case !m.Granted: // with a time: the run in front was called, and this one may pass it if it has not asked by then
		r.AskAt(l.s.now() + m.After)
		c.wakeFirst()
		return
	}
	if joined := r.LetIn(m.Last, m.Position); joined != nil {
		joined.retire(finished)
	}
	g, ok := c.grantOf(m)
	if r.Waiting > 0 && (!ok || r.Lease > 0 || l.s.cfg.Replicas > 0) { // else nobody would ask
		r.AskNow()
		c.wakeFirst()
		return
	}
	if m.Token > 0 {
		c.needAccount().Exactly(m.Tokens)
	}
	l.begin(c, g, m.Last)
	l.wakeDueRun() // which may have waited for the release that has let this one in
}

// begin opens the first section of a run that has the lock, for its waiters up to a number.
func (l *lock) begin(c *claim, g answer, until int64) {
	r := c.run
	c.apply(waiting.KeepClaim, r.Begin(until))
	a := c.nextOfRun(l.s.now())
	if a == nil { // its waiters have left, or none of them can be served
		c.end(nil)
		return
	}
	a.claim, a.op.ID = c, r.ID
	if r.Waiting > 1 {
		g.confirmAt = 0 // at once: another caller waits for the hand-over
	}
	x := a.admit(g)
	if g.unconfirmed > 0 {
		a.traced.Grant = locktrace.GrantLine
	}
	r.Remove(&a.member)
	r.Acknowledge()
	a.deliver(x)
}

// nextOfRun returns the waiter of the claim's run that is served next; nil if there is none.
func (c *claim) nextOfRun(now time.Duration) *acquisition {
	return c.run.Next(func(a *acquisition) bool { return a.waitErr == nil && (a.deadline == 0 || now < a.deadline) })
}

// requeue ends a run, and makes a new one, which is returned, of the waiters that are left, if there are any.
func (l *lock) requeue(r *run) *run {
	r.End()
	if r.Waiting == 0 || l.state != lockOpen {
		return nil
	}
	next := l.newRun(r.First().Of)
	r.Replace(next)
	return next
}

// requeueBy has the waiters that are left of a run enter the line again at their place, by the release of the run's
// claim. It returns their claim, nil if no waiter is left.
func (l *lock) requeueBy(r *run, op *Op) *claim {
	next := l.requeue(r)
	if next == nil {
		return nil
	}
	at := next.BeginAttempt()
	op.Line.Enter, op.Line.Waiting, op.Run = at.Entry, at.Waiting, &at
	next.Entering, next.Of.awaits = true, anAnswer
	return next.Of
}

// requeued handles the outcome of a release that was to enter a run in the line.
func (l *lock) requeued(c *claim, r *redis.Released, sent time.Duration, doubts uint32, err error) {
	c.run.Entering, c.awaits = false, nothing
	e := attempt{c: c, answer: answer{sent: sent, doubts: doubts}}
	e.Value, e.At, e.Position = -1, r.Line.At, r.Line.Position
	if err != nil || r.Lost || r.Resent || e.Position <= 0 {
		c.run.AskNow()
		e.err = errNotHeard
	}
	l.runAnswered(&e, 0)
	if l.s.unheard.Load() != 0 && l.s.deaf() { // no message can say that it was let in
		c.run.AskNow()
	}
	l.wakeDueRun()
}

// errNotHeard says that it is not known whether a release has entered a run.
var errNotHeard = fmt.Errorf("%w: the release before it was not confirmed", ErrUnavailable)
