package engine

import (
	"cmp"

	"relock/internal/redis"
	"relock/internal/report"
)

// The UnlockAsync of a hold whose section goes on. Until its release is answered, or the release timeout is over, it
// is the command of the claim that is under way (I4): nested Locks and inner Unlocks wait for it.

// A part is the ids of a side that a command ends, while other holds stay.
type part struct {
	side int
	ids  []string
}

// unlockInnerAsync is the UnlockAsync of a hold while its section goes on. The lock's mutex must be held; it is released
// meanwhile and held again at the end.
func (h *Hold) unlockInnerAsync(t *report.Hold) error {
	err, counted := h.endInner()
	switch c := h.section.claim; {
	case !counted:
	case c.account.Busy: // with a command whose answer comes first
		c.account.Unsent = true
	case c.releaseSurplusAsync(h.section, t):
		err = cmp.Or(err, errReleaseSent)
	}
	return err
}

// releaseUnsent sends what an UnlockAsync could not send, since another command of the claim was under way.
func (c *claim) releaseUnsent(x *section) {
	if c.account.Unsent && !c.account.Busy {
		c.releaseSurplusAsync(x, nil)
	}
}

// releaseSurplusAsync sends the release of holds beyond those that the section has, and reports whether there are any.
// The lock's mutex must be held; it may be released meanwhile, and is held again at the end.
func (c *claim) releaseSurplusAsync(x *section, t *report.Hold) bool {
	if x.ctx.HasEnded() || c.state != held || x.holds.Held() == 0 {
		return false
	}
	c.account.Unsent = false
	d := &asyncRelease{claimRelease: claimRelease{c: c, now: c.lock.s.now()}, trace: t, inner: x}
	keep := c.leaseForFixed(x)
	var cmds []redis.ReleaseCommand
	for side := range x.holds.Live {
		ends := c.surplus(side, x)
		if len(ends) == 0 {
			continue
		}
		if keep > 0 { // the holds that stay may have longer leases by the time that it runs
			c.account.Shortening(ends)
		}
		d.parts = append(d.parts, part{side, ends})
		cmds = append(cmds, redis.ReleaseCommand{Command: c.account.Partial(c.kind, side, ends, keep, c.op()), Known: true})
	}
	if cmds == nil {
		return false
	}
	d.Pending = redis.NewPending(cmds)
	c.account.Busy = true
	c.account.Leaves = true
	d.send()
	return true
}

// innerAnswered is answered, for an async release of holds whose section goes on.
func (d *asyncRelease) innerAnswered(err error) error {
	c, x := d.c, d.inner
	m := c.account
	m.Leaves = false
	switch {
	case err != nil:
		c.noHandOver = true
	case x.ctx.HasEnded() || c.state != held:
		err = x.lostErr()
	case d.Lost:
		c.lose("it was gone when it was unlocked", true)
		err = ErrLost
	default:
		d.confirmed()
		if until, _ := x.holds.LastFixed(nil); x.holds.Held() == len(x.holds.Fixed()) {
			c.trust = min(c.trust, until)
			c.reschedule()
		}
	}
	m.Answered()
	if c.state == held {
		c.releaseUnsent(x)
		c.clearHolder()
	}
	return err
}

// confirmed notes that the holds of an async release are no longer in Redis.
func (d *asyncRelease) confirmed() {
	for _, p := range d.parts {
		d.c.account.Ended(p.side, p.ids)
		d.c.account.Shortened(p.ids)
	}
}
