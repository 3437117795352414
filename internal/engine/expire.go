package engine

import (
	"fmt"
	"time"

	"relock/locktrace"
)

// leaveLost notes that a hold of a section that has ended is unlocked. When that was the last
// of the claim's, what may still stand in Redis is released.
func (x *section) leaveLost() {
	c := x.claim
	if ending(x.ended.Load()) != lost || x.held() > 0 {
		return
	}
	x.ended.Store(int32(lostAndUnlocked))
	c.more.owing--
	c.endLost()
}

// endLost ends a lost claim if its sections have all been unlocked.
func (c *claim) endLost() {
	if c.state == lostStanding && c.more.owing == 0 && c.lock.state != lockClosed {
		c.end(c.lock.s.now()+c.lock.s.cfg.Lease, nil)
	}
}

// expire ends what has run out of a held claim.
func (c *claim) expire(now time.Duration) {
	if c.state != held {
		return
	}
	for x := c.sections; x != nil; {
		next := x.next
		for _, h := range x.runOut(now) {
			c.lock.later(func() { h.endContext(ErrLost) })
		}
		switch {
		case x.held() == 0:
			c.loseSection(x, "its lease is over")
		case c.trust > now && x.until <= now:
			c.loseSection(x, "its lease was not renewed, since its context had ended")
		}
		x = next
	}
	if c.trust <= now {
		c.lose("no renewal was confirmed before the end of the lease", false)
	}
}

// Abandon ends the hold as Unlock does, but leaves the lock standing in Redis until its lease
// is over: the claim is neither renewed nor entered nor released from now on.
func (h *Hold) Abandon() error {
	if !h.valid() {
		return fmt.Errorf("abandon: %w", ErrNotHeld)
	}
	d, now := h.traced()
	err := h.abandon()
	d.Left(locktrace.HoldAbandoned, now, err)
	if err != nil {
		return opError("abandon", h.section.claim.prim, err)
	}
	return nil
}

func (h *Hold) abandon() error {
	x, c := h.section, h.section.claim
	l := c.lock
	l.mu.Lock()
	defer l.unlock()
	err := h.standing(l.s.now())
	if h.done {
		return err
	}
	h.done = true
	if err != nil && h.fixed != nil {
		x.endTrace(h, locktrace.HoldExpired) // if it has not been lost before
	}
	left := x.remove(h)
	if err != nil {
		x.leaveLost()
		return err
	}
	c.account().abandoned, c.pinned = true, true
	if left == 0 {
		c.leaveStanding(x)
		return nil
	}
	c.reschedule() // the holds that stay keep the section; the last of them leaves the lock
	l.later(func() { h.endContext(ErrReleased) })
	return nil
}

// leaveStanding closes a section of a claim that was abandoned, which ends with the last.
func (c *claim) leaveStanding(x *section) {
	if x.finish(released); c.sections == nil {
		c.retire(leftStanding)
		c.lock.nudge()
	}
}
