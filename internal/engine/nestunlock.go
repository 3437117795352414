package engine

import (
	"context"
	"errors"
	"time"

	"relock/internal/redis"
	"relock/internal/report"
)

// end is the Unlock of a hold that does not release the claim: its section has ended, has other holds, or
// leaves the lock standing; async says that it does not wait for an answer. The lock's mutex must be held; it is
// released meanwhile and held again at the end.
func (h *Hold) end(open bool, left int, d *report.Hold, async bool) error {
	switch x := h.section; {
	case !open:
		err := x.endedErr()
		x.leaveLost()
		return err
	case left > 0 && async:
		return h.unlockInnerAsync(d)
	case left > 0:
		return h.unlockInner(d)
	default:
		x.leaveStanding()
		return nil
	}
}

// unlockInner is the Unlock of a hold while its section goes on. The lock's mutex must be held; it
// is released meanwhile and held again at the end.
func (h *Hold) unlockInner(d *report.Hold) error {
	x, c := h.section, h.section.claim
	s := c.lock.s
	err, counted := h.endInner()
	if !counted {
		return err
	}
	ctx := s.releaseLimit.At(s.now())
	if !c.awaitAnswer(ctx, false) {
		return errEarlier // the command that is under way ends the surplus: see undoNested
	}
	if x.ctx.HasEnded() || c.state != held || x.holds.Held() == 0 {
		return errors.Join(err, x.lostErr())
	}
	if e := c.releaseSurplus(ctx, x, d); e != nil {
		err = e
	}
	return err
}

// endInner ends a hold while its section goes on. counted says that Redis may count it; err, that it was lost before.
// The lock's mutex must be held; it is released meanwhile and held again at the end.
func (h *Hold) endInner() (err error, counted bool) {
	c := h.section.claim
	l := c.lock
	if h.held.RanOut {
		err = ErrLost
	}
	c.noHandOver = c.noHandOver || l.holder == c && !c.excludes() // a downgrade: what is left lets others in
	c.reschedule()
	if h.held.Fixed != nil {
		l.unlock()
		h.held.EndContext(ErrReleased)
		l.mu.Lock()
	}
	return err, c.account != nil && !c.countsHere()
}

// leaseForFixed is for how long the holds of a section need the lock, if all have fixed leases; else 0.
func (c *claim) leaseForFixed(x *section) time.Duration {
	if x.holds.Held() != len(x.holds.Fixed()) {
		return 0
	}
	now := c.lock.s.now()
	_, ends := x.holds.LastFixed(nil)
	return max(ends-now, c.account.Left-now, time.Millisecond)
}

// lostErr is ErrLost or ErrClosed if the section has ended otherwise than by its last Unlock.
func (x *section) lostErr() error {
	switch x.ctx.Ended() {
	case lost, lostAndUnlocked, closed:
		return x.endedErr()
	}
	return nil
}

// releaseSurplus sends the release of holds beyond those that the section has. The lock's mutex
// must be held; it is released meanwhile and held again at the end.
func (c *claim) releaseSurplus(ctx context.Context, x *section, d *report.Hold) error {
	l, s := c.lock, c.lock.s
	keep := c.leaseForFixed(x)
	var err error
	c.account.Busy = true
	for side := range x.holds.Live {
		if x.ctx.HasEnded() { // the last Unlock releases the rest, and takes "not there" for lost
			break
		}
		ends := c.surplus(side, x)
		if len(ends) == 0 {
			continue
		}
		cmd := c.account.Partial(c.kind, side, ends, keep, c.op())
		l.unlock()
		traceDone := d.ReleaseStart()
		r, e := s.redis.Sender.Release(ctx, redis.ReleaseCommand{Command: cmd, Known: true})
		traceDone(e, r.Lost)
		l.mu.Lock()
		switch {
		case e != nil:
			err = e
			c.noHandOver = true
			if keep > 0 { // the holds that stay may have longer leases by the time that it runs
				c.account.Shortening(ends)
			}
			c.releasePart(side, ends, cmd)
		case x.ctx.HasEnded():
			err = x.lostErr()
		case r.Lost:
			c.lose("it was gone when it was unlocked", true)
			err = ErrLost
		default:
			c.account.Ended(side, ends)
			if keep > 0 {
				until, _ := x.holds.LastFixed(nil)
				c.trust = min(c.trust, until)
				c.reschedule()
			}
		}
	}
	c.account.Answered()
	c.releaseUnsent(x)
	c.clearHolder()
	return err
}
