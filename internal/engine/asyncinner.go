package engine

import (
	"cmp"

	"relock/internal/redis"
	"relock/internal/report"
)

// The UnlockAsync of a hold whose section goes on.

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
	e, cmds := x.releaseSurplus()
	if cmds == nil {
		return false
	}
	d := &asyncRelease{claimRelease: claimRelease{c: c, now: c.lock.s.now()}, trace: t, inner: e, Pending: redis.NewPending(cmds)}
	c.account.Leaves = true
	d.send()
	return true
}
