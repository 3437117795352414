package engine

import (
	"cmp"
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
	e, cmds := x.releaseSurplus()
	if cmds == nil {
		c.clearHolder()
		return err
	}
	c.lock.unlock()
	traceDone, late := s.releaseStart(d, func() { e.quit(cmds) })
	if late != nil {
		c.lock.mu.Lock()
		return late
	}
	r, sent := s.redis.Sender.Release(ctx, cmds...)
	c.lock.mu.Lock()
	if len(r.Unconfirmed) > 0 {
		s.cleanup.Add(redis.Job{Name: c.prim.Names().Name(), Cmds: r.Unconfirmed, Until: c.latestEnd(s.now()), Done: e.done})
	}
	err = cmp.Or(e.answered(r.Lost, sent), err)
	c.lock.unlock()
	traceDone(sent, r.Lost) // behind that: others of the claim wait for the answer
	c.lock.mu.Lock()
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

// leaseOfStaying is for how long the holds of a section need the lock: up to the last of their ends; and for the session's
// lease, if some of them are renewed. It is 0 where Redis keeps the lock for no longer than these need.
func (c *claim) leaseOfStaying(x *section) time.Duration {
	now := c.lock.s.now()
	_, ends := x.holds.LastFixed(nil)
	keep := max(ends-now, c.account.Left-now, c.account.AtLeast-now, time.Millisecond)
	if x.holds.Held() == len(x.holds.Fixed()) {
		return keep
	}
	keep = max(keep, c.lock.s.cfg.Lease)
	// An exposed claim may stand for longer than it is trusted.
	if c.trust <= now+trustIn(keep) && (c.safeLease == never || c.account.Stands <= now+keep) {
		return 0
	}
	return keep
}

// lostErr is ErrLost or ErrClosed if the section has ended otherwise than by its last Unlock.
func (x *section) lostErr() error {
	switch x.ctx.Ended() {
	case lost, lostAndUnlocked, closed:
		return x.endedErr()
	}
	return nil
}

// An innerRelease ends holds beyond those that a section has, which goes on. Until it is answered, or the release timeout
// is over, it is the command of the claim that is under way (I4): nested Locks and inner Unlocks wait for it.
type innerRelease struct {
	section *section
	parts   []part // for each command
	cuts    bool   // Redis keeps the lock for no longer than what stayed needed when it was prepared
}

// A part is the ids of a side that a command ends, while other holds stay.
type part struct {
	side int
	ids  []string
}

// releaseSurplus prepares the release of holds beyond those that an open section has. It returns no commands if there
// are none.
func (x *section) releaseSurplus() (e *innerRelease, cmds []redis.ReleaseCommand) {
	c := x.claim
	c.account.Unsent, e = false, &innerRelease{section: x}
	keep := c.leaseOfStaying(x)
	for side := range x.holds.Live {
		ends := c.surplus(side, x)
		if len(ends) == 0 {
			continue
		}
		if keep > 0 { // the holds that stay may have longer leases by the time that it runs
			c.account.Shortening(ends)
			e.cuts = true
		}
		e.parts = append(e.parts, part{side, ends})
		cmds = append(cmds, redis.ReleaseCommand{Command: c.account.Partial(c.kind, side, ends, keep, c.op()), Known: true})
	}
	if e.cuts {
		c.cut(c.lock.s.now(), keep)
	}
	c.account.Busy = c.account.Busy || cmds != nil
	return e, cmds
}

// answered handles the answer to the commands, or the error that stands for it, and returns the error of the Unlock.
func (e *innerRelease) answered(gone bool, err error) error {
	x, c := e.section, e.section.claim
	c.account.Leaves = false
	switch {
	case err != nil:
		c.noHandOver = true
	case x.ctx.HasEnded() || c.state != held:
		err = x.lostErr()
	case gone:
		c.lose("it was gone when it was unlocked", true)
		err = ErrLost
	default:
		e.confirmed()
		fixed := x.holds.Held() == len(x.holds.Fixed())
		if until, _ := x.holds.LastFixed(nil); fixed {
			c.trust = min(c.trust, until)
		}
		if e.cuts || fixed {
			c.reschedule()
		}
	}
	c.answered()
	if c.state == held {
		c.releaseUnsent(x)
		c.clearHolder()
	}
	return err
}

// confirmed notes that the holds are no longer in Redis.
func (e *innerRelease) confirmed() {
	for _, p := range e.parts {
		e.section.claim.account.Ended(p.side, p.ids)
		e.section.claim.account.Shortened(p.ids)
	}
}

// done is called by the clean-up, which has sent what was not confirmed.
func (e *innerRelease) done(err error) {
	if err == nil {
		l := e.section.claim.lock
		l.mu.Lock()
		e.confirmed()
		l.unlock()
	}
}
