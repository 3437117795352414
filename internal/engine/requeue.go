package engine

import "context"

// requeue makes a new run of the waiters of one that cannot go on.
func (l *lock) requeue(r *run) {
	if r.Waiting() > 0 && l.state == lockOpen {
		r.Replace(&l.newRun(r.First().Of, r.Kind, r.lease).Run)
		l.press()
	}
}

// leaveQueue sees to the waiters that a run leaves behind when its claim is about to be released.
// They queue before, so that nobody comes in between. The lock's mutex must be held; it may be
// released meanwhile, and is held again at the end.
func (c *claim) leaveQueue() {
	l, r := c.lock, c.run
	r.End()
	switch {
	case r.Waiting() == 0:
		l.hasten()
	case l.line.busy:
		l.requeue(r) // it goes with the next call, which may come too late
	default:
		l.line.busy = true // else it would be sent in the background
		l.requeue(r)
		l.sendNow(func() (context.Context, context.CancelFunc) {
			return l.s.life.releases.At(l.s.now()), func() {}
		})
	}
}

// endRun sees to the waiters that a run leaves behind when its claim is retired.
func (l *lock) endRun(c *claim) {
	r := c.run
	if c.state != lostStanding { // else a late grant message would release it under its section
		l.s.fair.remove(r.Entry, c)
	}
	if c.flight == overtaken {
		c.flight = landed
		c.dismiss()
	}
	r.End()
	l.requeue(r)
	l.hasten()
	r.Tell()
}
