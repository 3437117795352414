package engine

import (
	"context"

	"relock/internal/report"
)

// quit.go ends a call whose goroutine code of the caller's has ended, by a panic or as t.FailNow does: a hook, a Backoff, or a
// context that must not be used any longer. Where such code runs a.undo says how; acquire calls it. Else later callers would
// wait behind that call, or the lock be renewed without an owner. No mutex may be held.

// quit ends a call that waits, or was given a section, which it gives back.
func (a *acquisition) quit() {
	l, err := a.lock, report.ErrQuit
	var hold *Hold
	l.mu.Lock()
	a.detachPending()
	if a.subscribing = false; a.trying {
		l.trying--
	}
	if h := a.nested; h != nil { // it has not got its hold
		h.section.holds.Leave(h.held.Side)
		h.section.undoNested()
	}
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
func (a *acquisition) quitAsking() {
	l, c := a.lock, a.claim
	l.mu.Lock()
	c.awaits, a.attempts.MayHaveRun = nothing, true
	if c.account != nil {
		c.account.Wake()
	}
	if c.state == finished { // it was ended meanwhile
		c.dismiss()
	}
	l.unlock()
	a.quit()
}

// quitRun is quit in the middle of an attempt for the caller's run, whose other callers go on.
func (a *acquisition) quitRun() {
	l, e := a.lock, a.forRun
	l.mu.Lock()
	l.runs.Asking, e.c.awaits = false, nothing
	e.err = context.Canceled
	l.runAnswered(e, 0)
	l.wakeDueRun()
	l.unlock()
	a.quit()
}

// quitAskingNested is quit in the middle of an attempt of a nested Lock: its outcome is not known.
func (a *acquisition) quitAskingNested() {
	l, x := a.lock, a.nested.section
	l.mu.Lock()
	a.unresolvedNested(x)
	x.claim.answered()
	l.unlock()
	a.quit()
}

// quitVoiding is quit in the middle of the command that a nested Lock sends before its own.
func (a *acquisition) quitVoiding() {
	l := a.lock
	l.mu.Lock()
	a.nested.section.claim.answered()
	l.unlock()
	a.quit()
}

// quitHold is quit of a nested Lock that has got its hold.
func (a *acquisition) quitHold() {
	if t := a.lock.s.trace; t != nil {
		a.traceEnd(t, a.nested, nil)
	}
	_ = a.nested.Unlock(false) // no caller hears of it
}
