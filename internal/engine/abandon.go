package engine

import (
	"fmt"

	"relock/locktrace"
)

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
	c.needAccount().abandoned, c.pinned = true, true
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
	if x.end(released); c.sections == nil {
		c.retire(leftStanding)
		c.lock.nudge()
	}
}
