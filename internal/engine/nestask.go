package engine

import (
	"time"

	"relock/internal/account"
	"relock/internal/clock"
	"relock/internal/idgen"
	"relock/internal/script"
)

// unresolvedNested notes that the outcome of an attempt is not known.
func (a *acquisition) unresolvedNested(x *section) {
	c, side := x.claim, a.kind.Side
	c.noHandOver = true
	c.account.MarkUnresolved(side)
	if !x.ctx.HasEnded() { // else the claim ends, and all that may stand of it
		c.releasePart(side, c.account.EndUnresolved(side, a.op.ID))
	}
}

// prepareNested notes in the account what is about to be sent.
func (a *acquisition) prepareNested(c *claim) {
	m := c.needAccount()
	a.op = Op{Owner: c.ownerID(), N: a.n, ID: idgen.Request(), Lease: a.lease}
	if a.kind.Fenced && c.sections != nil && c.sections.token.Load() == 0 {
		m.Exactly(1)
		a.op.Tokens = 1
	}
	if c.kind.Writes && c.num != 0 { // it may be ended before a read hold that was taken inside; Nest asks for it once
		a.op.First = idgen.Request()
	}
	c.noHandOver = m.Nest(c.kind, a.prim, &a.op) || c.noHandOver
	if c.safeLease == never && a.safeLease != never {
		m.Stands = max(m.Stands, c.trust+time.Second) // what was granted stands for longer than it is trusted from now on
	}
	c.safeLease = min(c.safeLease, a.safeLease)
}

// askNested sends the attempt until it is answered, or the caller's context or the section ends.
// The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) askNested(x *section) (g answer, err error) {
	l := a.lock
	l.unlock()
	a.undo = (*acquisition).quitAskingNested
	own, release := x.contexts(a.ctx).Bound(a.ctx)
	ctx, cancel := a.bounded(own, a.queued)
	for {
		a.traced.Attempts++
		e := attempt{c: x.claim, target: a.target, op: &a.op, caller: a.ctx}
		l.s.send(ctx, &e)
		g, err = e.answer, e.err
		l.mu.Lock()
		a.attempts.Note(&account.Outcome{Err: err, Granted: g.Status == granted, Unacknowledged: g.unacknowledged, Sent: g.sent, Now: l.s.now()})
		a.noteOutage(err)
		l.unlock()
		switch {
		case err == nil:
		case ctx.Err() != nil || a.ctx.Err() != nil: // the first is derived from the second, and may end a little later
			err = a.ended()
		case script.Classify(err) == script.Refused || (!a.wait && a.stopsTrying(err)):
		case clock.Pause(ctx, a.attempts.Failures) != nil:
			err = a.ended()
		default:
			continue
		}
		break
	}
	cancel()
	release()
	a.undo = nil
	l.mu.Lock()
	return g, err
}

// undoNested ends what a nested Lock that failed may have left: holds beyond those that the
// section has, or the section itself if its other holds were unlocked meanwhile. The lock's mutex must be
// held; it may be released meanwhile, and is held again at the end.
func (x *section) undoNested() {
	c := x.claim
	switch {
	case x.ctx.HasEnded():
		x.leaveLost()
	case x.holds.Held() > 0:
		c.endSurplus()
	default:
		if x.close(released) {
			x.cancelFirst()
		}
		if c.endLost(); c.sections == nil && c.state == held && !c.account.Cancels() {
			c.end(nil)
		}
	}
}
