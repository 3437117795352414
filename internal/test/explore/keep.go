package explore

// A session may keep a lock that it has left: the claim stands, without a section, and the next one is opened on it in memory.
// It gives it back when it is asked, after a while, and when it trusts it no more.

// keepFor is for how long a lock is kept at most, in ms, and for how long one that is used again and again.
const keepFor = 2000

// Kept is what a locker notes of a claim that it may keep.
type kept struct {
	wanted bool  // another one has asked for it
	since  int64 // when it was kept for the first time; 0: it has not been
	to     int64 // until when it is kept
}

func (k *kept) write(h *hasher) {
	h.flag(k.wanted)
	if k.since > 0 {
		h.since(k.since, keepFor)
	}
	h.until(k.to)
}

// keep keeps the claim, whose section is over, if it may, and reports whether it does.
func (c *locker) keep(w *world) bool {
	now := w.now()
	if !c.keeps || c.wanted || !c.entrable(w) || c.since > 0 && now-c.since >= keepFor {
		return false
	}
	if c.since == 0 {
		c.since = now
	}
	c.phase, c.to = keeping, now+keepFor
	return true
}

// entrable reports whether a claim is trusted for long enough to be kept, or entered again.
func (c *locker) entrable(w *world) bool {
	return c.until-w.now() >= trustIn(w.set.lease)/2 || c.flaws.has(reusesLate)
}

// reuse opens a section on what it keeps; one that it does not trust for long it gives back, and asks for another.
func (c *locker) reuse(w *world) {
	if c.entrable(w) {
		c.phase = held
		return
	}
	c.giveBack(w)
	c.newClaim(c.num + 1)
	c.attempt(w)
}

// ownKept lists what it may do while it keeps the claim.
func (c *locker) ownKept(now int64, buf []ownStep) []ownStep {
	if (now >= c.to || now >= c.until) && !(c.flaws.has(reusesLate) && c.rounds > 0) {
		return append(buf, ownStep{code: giveBack, prompt: true})
	}
	if !c.renewing && now >= c.renewAt {
		buf = append(buf, ownStep{code: renew, prompt: true})
	}
	if c.rounds > 0 {
		buf = append(buf, ownStep{code: begin})
	}
	return buf
}

func (c *locker) nextKept(now int64) int64 {
	next := min(c.to, c.until)
	if !c.renewing && c.renewAt > now {
		next = min(next, c.renewAt)
	}
	return next
}

// giveBack releases what it keeps, in the background.
func (c *locker) giveBack(w *world) {
	c.release(w, dismisses, c.num, "", 0)
	c.rest()
}

// askedBack takes in that another one wants what the session may keep.
func (c *locker) askedBack(w *world, owner string) {
	switch {
	case owner != c.owner(c.num):
	case (c.phase == held || c.flying) && !c.flaws.has(forgetsWanted):
		c.wanted = true
	case c.phase == keeping && !c.flaws.has(ignoresWanted):
		c.giveBack(w)
	}
}
