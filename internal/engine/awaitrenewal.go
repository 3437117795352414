package engine

import (
	"time"
)

// A claim pauses, without a section, until a renewal has confirmed it: too little of its trust is left for the
// next caller. Redis has given it to the session by another's release, or it is a run's.

// mayAwaitRenewal reports whether a claim may do so.
func (c *claim) mayAwaitRenewal(now time.Duration) bool {
	ct := c.lock.contention
	if c.kind.Permits && ct != nil && ct.place.AwaitsRenewal != nil && ct.place.AwaitsRenewal != c { // one at a time
		return false
	}
	return (c.run != nil || ct != nil && ct.place.Given == c) && c.state == held && !c.cannotHandOver() && now < c.trust && c.lock.s.cfg.HandOverLimit >= 0
}

// awaitRenewal has it do so.
func (c *claim) awaitRenewal(now time.Duration) {
	c.lock.needContention().place.AwaitsRenewal = c
	if c.stopped || c.renewAt != renewalUnderWay {
		c.stopped, c.renewAt = false, now
	}
	c.reschedule()
}

// awaitsRenewal reports whether the claim waits for that.
func (c *claim) awaitsRenewal() bool {
	ct := c.lock.contention
	return ct != nil && ct.place.AwaitsRenewal == c
}

// resume goes on with a claim that a renewal has confirmed.
func (c *claim) resume(now time.Duration) {
	if c.state != held || !c.awaitsRenewal() {
		return
	}
	l := c.lock
	l.contention.place.AwaitsRenewal = nil
	switch {
	case !l.handOver(c, now):
		c.end(nil)
		l.askAtOnce()
	case l.s.trace != nil && !c.awaitsRenewal():
		l.s.notify(c.traceHandedOver)
	}
}
