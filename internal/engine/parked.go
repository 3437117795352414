package engine

import "slices"

// Parked claims: permits that came free while the caller in front was asking Redis. It cannot be
// given them then, for the answer may bring it others; and to release them would have Redis grant
// the same permits to the same session a moment later, which again asks meanwhile. So they wait,
// for a round trip at most: when the front has its answer they go to the callers in front, or to
// Redis if these cannot take them.

// unpark hands out what was parked, unless the front is asking again. The lock's mutex must be
// held.
func (l *lock) unpark() {
	b := l.lobby
	for b != nil && len(b.parked) > 0 {
		c, a, now := b.parked[0], l.queue.Front(), l.s.now()
		idle := c.state == held && c.sections == nil
		if idle && a != nil && a.underWay() && l.state == lockOpen && c.entrable(now) {
			return
		}
		b.parked = b.parked[1:]
		switch {
		case !idle: // it was lost, or the session closes
		case a != nil && l.state == lockOpen && c.entrable(now) && a.mayEnter(c, now):
			l.give(c, a, now)
			l.callUp()
		default:
			c.end(nil)
		}
	}
}

// parked reports whether the claim is permits that wait for the front's answer.
func (c *claim) parked() bool {
	b := c.lock.lobby
	return c.sections == nil && b != nil && slices.Contains(b.parked, c)
}
