package engine

import (
	"time"
)

// pausesFor reports whether a claim without a section waits for a renewal: the lock was given to it, and too
// little of the trust is left for the next caller until that is confirmed.
func (l *lock) pausesFor(c *claim, now time.Duration) bool {
	b := l.lobby
	if b == nil || b.place.Given != c || c.state != held || c.pinned || now >= c.trust || l.s.cfg.HandOverLimit < 0 {
		return false
	}
	c.pause(now)
	return true
}

// pause keeps a claim without a section until a renewal has confirmed it.
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
	case l.queue.First == nil || !l.handOver(c, now):
		c.end(nil)
		l.nudge()
	case l.s.trace != nil && !c.paused():
		l.s.notify(c.traceHandedOver)
	}
}
