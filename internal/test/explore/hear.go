package explore

import (
	"relock/internal/inbox"
	"relock/internal/kind"
	"relock/internal/waiting"
)

// What a locker makes of messages.

func (c *locker) hear(w *world, p parcel) {
	if p.fromLock {
		c.soon = c.soon || c.phase == asking
		return
	}
	if n, ok := inbox.ParseNote(p.text); ok && n.Kind == inbox.Lost {
		c.revoked(w, n.Owner)
		return
	} else if ok {
		c.askedBack(w, n.Owner)
		return
	}
	m, ok := waiting.Parse(p.text, c.id)
	if !ok {
		w.fail("the session does not understand " + p.text)
		return
	}
	_, num, _ := claimOf(m.Owner)
	if m.Named {
		num = 1
	}
	entering := c.phase == releasing && num == c.num+1 && c.anew && c.rounds > 0
	switch {
	case entering:
		c.told = p
	case num != c.num || c.phase == idle:
		c.dismiss(w, &m, num)
	case c.phase != asking:
	case c.flying:
		c.told = p
	case m.Granted:
		c.given(w, &m, p.us)
	case c.fair:
		c.askAt = min(c.askAt, w.now()+m.After.Milliseconds())
	default:
		c.soon = c.soon || m.After == 0
		c.lookAt = min(c.lookAt, w.now()+m.After.Milliseconds())
	}
}

// given takes in that another's release has given the lock to the claim.
func (c *locker) given(w *world, m *waiting.Message, us int64) {
	now, lease := w.now(), m.Lease.Milliseconds()
	at := c.offset + m.At - 1
	if c.flaws.has(trustsFromReply) {
		at = now
	}
	newer := us < c.readAt && !c.flaws.has(trustsTold) // a refusal: what was given is gone. (The engine knows ms.)
	if !c.read || newer || at > now || now >= at+trustIn(lease)/2 {
		c.soon = true
		return
	}
	trusted := trustIn(min(lease, w.set.lease))
	if c.flaws.has(trustsFullLease) {
		trusted = trustIn(w.set.lease)
	}
	c.enter(w, at+trusted, now+waiting.ConfirmAfter.Milliseconds(), m.Token)
}

// dismiss gives back what an unknown claim was given, or takes its entry off the line.
func (c *locker) dismiss(w *world, m *waiting.Message, num int8) {
	op := &kind.Op{Owner: m.Owner, N: c.n, All: m.Granted, Private: m.Granted, Line: kind.Line{Named: true, Head: m.Head}}
	w.send(c.who, &command{Command: c.prim.Release(op), what: dismisses, num: num})
}

// revoked takes in that an owner was forced out.
func (c *locker) revoked(w *world, owner string) {
	if owner != c.owner(c.num) {
		return
	}
	w.robbed[c.who] = 0
	switch c.phase {
	case asking:
		c.giveUp(w)
		position := c.position
		c.newClaim(c.num + 1)
		c.flying, c.soon, c.position = false, true, position
	case held, keeping: // an attempt that came behind may have taken it anew
		c.release(w, dismisses, c.num, "", 0)
		c.rest()
	}
}
