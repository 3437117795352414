package engine

import (
	"time"
)

// A claim pauses, without a section, until a renewal has confirmed it: too little of its trust is left for the
// next caller. Redis has given it to the session by another's release, or it is a run's.

// mayPause reports whether a claim may do so.
func (c *claim) mayPause(now time.Duration) bool {
	b := c.lock.lobby
	if c.kind.Permits && b != nil && b.place.Pause != nil && b.place.Pause != c { // one at a time
		return false
	}
	return (c.run != nil || b != nil && b.place.Given == c) && c.state == held && !c.stays() && now < c.trust && c.lock.s.cfg.HandOverLimit >= 0
}

// pause has it do so.
func (c *claim) pause(now time.Duration) {
	c.lock.needLobby().place.Pause = c
	if c.stopped || c.renewAt != awaited {
		c.stopped, c.renewAt = false, now
	}
	c.reschedule()
}

// paused reports whether the claim waits for that.
func (c *claim) paused() bool {
	b := c.lock.lobby
	return b != nil && b.place.Pause == c
}

// resume goes on with a claim that a renewal has confirmed.
func (c *claim) resume(now time.Duration) {
	if c.state != held || !c.paused() {
		return
	}
	l := c.lock
	l.lobby.place.Pause = nil
	switch {
	case !l.handOver(c, now):
		c.end(nil)
		l.nudge()
	case l.s.trace != nil && !c.paused():
		l.s.notify(c.traceHandedOver)
	}
}
