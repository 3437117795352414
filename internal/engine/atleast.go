package engine

import (
	"time"

	"relock/internal/api"
	"relock/internal/kind"
)

// A lock that is taken with AtLeast stands until a while after it was acquired, also if it is unlocked before: the
// last Unlock, and Close, leave it to its lease then, which is cut to what is missing. Redis ends it.

// leaves reports whether a lock can be left standing.
func leaves(p Primitive) bool {
	_, ok := p.(kind.Leaver)
	return ok
}

// standAtLeast notes for how long the lock is to stand, when it has just been acquired. One of several that are taken
// together is not to stand before all of them are held: see [Hold.StandAtLeast].
func (c *claim) standAtLeast(o *api.Options) {
	if o.Keeps == nil {
		c.standFor(o.AtLeast)
	}
}

// standFor notes that the lock is to stand until d after now.
func (c *claim) standFor(d time.Duration) {
	m := c.needAccount()
	m.AtLeast = max(m.AtLeast, c.lock.s.now()+d)
}

// StandAtLeast is what AtLeast does to a lock that was acquired just now, for one of several that were taken together
// with AtLeast, when all of them are held: until then its caller gives it back if it cannot have the others.
func (h *Hold) StandAtLeast(d time.Duration) {
	if !h.valid() {
		return
	}
	c := h.section.claim
	c.lock.mu.Lock()
	defer c.lock.unlock()
	if h.check(c.lock.s.now()) == nil {
		c.standFor(d)
	}
}

// mustStand returns for how long the lock has yet to stand, at least 1 ms; 0 if it need not.
func (c *claim) mustStand(now time.Duration) time.Duration {
	if c.account == nil || c.account.AtLeast <= now {
		return 0
	}
	return max(c.account.AtLeast-now, time.Millisecond)
}

// opensLater notes that no hold of a section needs a side any more that stands for a while yet. The section may go on, as
// that of a writer who has become a reader: then the watchdog has to release the side.
func (c *claim) opensLater(side int, x *section) {
	if x.holds.Needed(side) == 0 && c.account.Counted(c.kind, side) > 0 {
		c.account.Opens = true
		c.reschedule()
	}
}

// opensAt returns when a side is to be released that no hold needs; never if there is none.
func (c *claim) opensAt() time.Duration {
	if c.account == nil || !c.account.Opens {
		return never
	}
	return c.account.AtLeast
}

// releaseOpened releases such a side when its time has come, in the background.
func (c *claim) releaseOpened(now time.Duration) {
	switch {
	case c.state != held || c.sections == nil || c.opensAt() > now:
		return
	case c.account.Busy: // with a command whose answer comes first
		c.account.Unsent = true
	default:
		c.endSurplus()
	}
	c.account.Opens = false
}
