package engine

import (
	"time"
)

// A claim that has too little trust left for the next caller stays held, without a section, until a renewal has
// confirmed it. Only two sorts of claims do so: those that another session's release has granted, and those of runs.

// awaitRenewal has the claim renewed before its next section opens, if it was granted by another session's release, or is a
// run's, and can still be renewed and handed over. Else it reports false.
func (c *claim) awaitRenewal(now time.Duration) bool {
	ct := c.lock.contention
	for o := c.lock.claims; o != nil && c.kind.Permits; o = o.next {
		if o.awaits == aRenewal { // one at a time
			return false
		}
	}
	if c.run == nil && (ct == nil || ct.place.Unconfirmed != c) || !c.handsOver() || c.trust <= now {
		return false
	}
	c.awaits = aRenewal
	if c.except == unrenewed || c.renewAt != renewalUnderWay {
		c.except = ordinary
		c.askSoon(now)
	}
	c.reschedule()
	return true
}

// resume hands over a claim that waited for a renewal, which has confirmed it.
func (c *claim) resume(now time.Duration) {
	l := c.lock
	c.awaits = nothing
	switch {
	case !l.handOver(c, now):
		c.end(nil)
		l.askAtOnce()
	case l.s.trace != nil && c.awaits != aRenewal:
		l.s.notes.Add(c.traceHandedOver)
	}
}
