package engine

import "relock/internal/report"

// orQuit runs code of the caller's in the middle of a call, which quits if that ends the goroutine. No mutex may be held.
func (a *acquisition) orQuit(code func()) {
	returned := false
	defer func() {
		if !returned {
			a.quit()
		}
	}()
	code()
	returned = true
}

// quit ends a call whose goroutine code of the caller's has ended, by a panic or as t.FailNow does: a hook, a Backoff, or a
// context that must not be used any longer. The caller waits no more, and gives back what it was given. Else later callers would
// wait behind it, and the lock be renewed without an owner. No mutex may be held.
func (a *acquisition) quit() {
	l, err := a.lock, report.ErrQuit
	var hold *Hold
	l.mu.Lock()
	a.subscribing = false
	x := a.given.Load()
	switch {
	case x == nil:
		err = a.fail(err)
	case x.isOpen(l.s.now()):
		hold, err = &x.first, nil
		l.unlock()
	default:
		l.unlock()
	}
	if a.attempts.stuck {
		l.s.outage.Leave(&a.attempts.stuck)
	}
	a.unblocked()
	if l.s.trace != nil {
		a.traceEnd(l.s.trace, hold, err)
	}
	if x != nil {
		_ = x.first.Unlock(false) // no caller hears of it
	}
}

// quitAsking is quit in the middle of an attempt for a claim: its outcome is not known.
func (a *acquisition) quitAsking(c *claim) {
	l := a.lock
	l.mu.Lock()
	c.awaits, a.attempts.MayHaveRun = nothing, true
	if c.account != nil {
		c.account.Wake()
	}
	if c.state == finished { // it was ended meanwhile
		c.dismiss()
	}
	if !a.wait {
		l.trying--
	}
	l.unlock()
	a.quit()
}

// quitNested is quit of a nested Lock that has not got its hold.
func (a *acquisition) quitNested(x *section, side uint8) {
	l := a.lock
	l.mu.Lock()
	x.holds.Leave(side)
	x.undoNested()
	l.unlock()
	a.quit()
}

// quitHold is quit of a nested Lock that has got its hold.
func (a *acquisition) quitHold(h *Hold) {
	if t := a.lock.s.trace; t != nil {
		a.traceEnd(t, h, nil)
	}
	_ = h.Unlock(false) // no caller hears of it
}
