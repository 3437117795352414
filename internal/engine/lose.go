package engine

import (
	"time"

	"relock/internal/api"
	"relock/locktrace"
)

// expire ends what has run out of a held claim.
func (c *claim) expire(now time.Duration) {
	if c.state != held {
		return
	}
	for x := c.sections; x != nil; {
		next, over := x.next, false
		if x.holds.Nested != nil { // else it has no fixed leases
			for _, h := range x.holds.RunOut(now) {
				x.endTrace(h, locktrace.HoldExpired)
				if h.HasContext() {
					c.lock.later(func() { h.EndContext(ErrLost) })
				}
			}
			over = x.holds.Held() == 0
		}
		switch {
		case over:
			c.loseSection(x, "its lease is over")
		case c.trust > now && x.holds.Until <= now:
			c.loseSection(x, "its lease was not renewed, since its context had ended")
		}
		x = next
	}
	if c.trust <= now {
		c.lose("no renewal was confirmed before the end of the lease", false)
	}
}

// lose ends a held claim that can be trusted no longer. gone says that it is known not to stand any more: by an answer
// of Redis, by a message, or since another owner was let in.
func (c *claim) lose(reason string, gone bool) {
	if c.state != held {
		return
	}
	if c.awaits != nothing { // no caller loses the lock
		c.end(nil)
		c.lock.askAtOnce()
		return
	}
	for c.sections != nil { // there are none if an Unlock has closed the last one, and cancels its contexts
		c.sections.lose()
	}
	l, wasHolder := c.lock, c.lock.holder == c
	if gone && c.num != 0 && c.n <= 1 {
		c.retire(lostGone)
	} else { // a named owner's other holds may stand, each for itself, and other permits
		c.retire(lostStanding)
	}
	l.later(func() { c.reportLost(reason) })
	if wasHolder || c.kind.Shares {
		l.askAtOnce()
	}
}

// lose ends a section whose claim is lost, or whose own time is over. What finds that out is mostly no call of its callers,
// whose contexts may block: each is cancelled in the background by itself, where nothing waits for it. The section itself
// says at once that it has ended.
func (x *section) lose() {
	x.claim.needAccount().LostSections++
	x.endTraces(locktrace.HoldLost)
	if x.close(lost) {
		run := x.claim.lock.s.life.Background.Go
		run(func() { x.cancel(run) })
	}
}

// loseSection ends a section whose own time is over, and its claim, if that has no other one.
func (c *claim) loseSection(x *section, reason string) {
	if c.sections == x && x.next == nil && !c.account.Cancels() {
		c.lose(reason, false)
		return
	}
	x.lose()
	c.lock.later(func() { c.reportLost(reason) })
}

// reportLost reports a loss to the logger and the hooks.
func (c *claim) reportLost(reason string) {
	s := c.lock.s
	e := locktrace.Lost{Name: c.prim.Names().Name(), Kind: c.kind.HookName(), Owner: c.ownerID(), N: max(int(c.n), 1), Reason: reason}
	s.log.Warn("relock: lock lost", "name", api.Shown(e.Name), "owner", api.Shown(e.Owner), "reason", reason)
	if t := s.trace; t != nil {
		s.notes.AddSurely(func() { t.Hooks.Lost(e) }) // many locks may be lost at a time, and each loss counts
	}
}

// leaveLost notes that a hold of a section that has ended is unlocked. When that was the last
// of the claim's, what may still stand in Redis is released.
func (x *section) leaveLost() {
	c := x.claim
	if x.ctx.Ended() != lost || x.holds.Held() > 0 {
		return
	}
	x.ctx.End(lostAndUnlocked)
	c.account.LostSections--
	c.endLost()
}

// endLost releases what may still stand of a claim that was lost, once all its sections are unlocked.
func (c *claim) endLost() {
	if c.state == lostStanding && (c.account == nil || c.account.LostSections == 0) && !c.account.Cancels() && c.lock.state != lockClosed {
		c.end(nil)
	}
}
