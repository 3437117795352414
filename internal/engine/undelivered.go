package engine

// Undelivered claims: permits that came free while the caller in front was asking Redis. The front cannot
// be given them then, for the answer may bring it others. If the session released them, Redis would grant
// the same permits to the same session a moment later, which again asks meanwhile. So the claims wait
// for a round trip at most: when the front has its answer they are delivered to the callers in front, or
// released if these cannot take them.

// deliverPermits hands out the undelivered permits, unless the front is asking again. The lock's mutex must be
// held.
func (l *lock) deliverPermits() {
	ct := l.contention
	for ct != nil && len(ct.undelivered) > 0 {
		c, now := ct.undelivered[0], l.s.now()
		idle := c.state == held && c.sections == nil
		var a *acquisition // to which they may be given
		if l.queue.First != nil && l.state == lockOpen && c.entrable(now) {
			a = l.queue.First.Of
		}
		if idle && a != nil && a.busy() && !a.subscribing {
			return
		}
		ct.undelivered = ct.undelivered[1:]
		switch {
		case !idle: // it was lost, or the session closes
		case a != nil && !a.busy() && a.wants(c, now):
			l.give(c, a, now)
			l.wakeFront()
		default:
			c.end(nil)
		}
	}
}
