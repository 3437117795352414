package engine

import (
	"fmt"
	"time"

	"relock/locktrace"
)

// Abandon ends the hold as Unlock does, but leaves the lock standing in Redis until its lease
// is over: the claim is neither renewed nor entered nor released from now on.
func (h *Hold) Abandon() (err error) {
	if !h.valid() {
		return fmt.Errorf("abandon: %w", ErrNotHeld)
	}
	x, c := h.section, h.section.claim
	l := c.lock
	d, now := h.traced()
	defer func() {
		if d.Left(locktrace.HoldAbandoned, now, err); err != nil {
			err = opError("abandon", c.prim, err)
		}
	}()
	l.mu.Lock()
	defer l.unlock()
	err = h.check(l.s.now())
	if h.held.Done {
		return err
	}
	h.held.Done = true
	if err != nil && h.held.Fixed != nil {
		x.endTrace(&h.held, locktrace.HoldExpired) // if it has not been lost before
	}
	left := x.holds.Remove(&h.held)
	if err != nil {
		x.leaveLost()
		return err
	}
	c.noHandOver = true
	m := c.needAccount()
	m.Left = max(m.Left, c.standsUntil(h))
	if side := int(h.held.Side); leaves(m.Sides(c.prim)[side]) {
		m.AtLeast = max(m.AtLeast, m.Left) // a writer's other holds, which read, do not let readers in before
		c.opensLater(side, x)
	}
	if left == 0 {
		x.leaveStanding()
		return nil
	}
	c.reschedule() // the holds that stay keep the section; the last of them leaves the lock
	l.later(func() { h.held.EndContext(ErrReleased) })
	return nil
}

// standsUntil returns when the lease of a hold ends in Redis. Of one that was counted in memory Redis has
// not heard: then it ends with what was granted.
func (c *claim) standsUntil(h *Hold) time.Duration {
	if h.held.Fixed != nil {
		return min(h.held.Ends, max(c.trust+time.Second, c.needAccount().Stands))
	}
	lease := min(c.lock.s.cfg.Lease, c.safeLease)
	return c.trust + lease - trustIn(lease)
}

// leaveStanding ends a section of a claim of which a hold was abandoned; the claim ends with the last.
func (x *section) leaveStanding() {
	if x.end(released); x.claim.sections == nil {
		x.claim.leaveStanding()
	}
}

// leaveStanding leaves to its lease what may stand of a claim. Where that is to stand for longer it is told to, in the
// background: no caller waits for the outcome.
func (c *claim) leaveStanding() {
	if now := c.lock.s.now(); c.account.AtLeast > c.account.Left && c.mustStand(now) > 0 {
		op := c.op()
		op.Lease = c.mustStand(now)
		c.lock.s.cleanup.Add(c.endJob(op, c.latestEnd(now)))
	}
	c.retire(leftStanding)
	c.lock.askAtOnce()
}
