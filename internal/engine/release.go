package engine

import (
	"fmt"
	"time"

	"relock/internal/holds"
	"relock/internal/redis"
	"relock/internal/report"
	"relock/locktrace"
)

// Unlock releases the hold; package rlock documents it. With async it does not wait for an answer, and returns
// errReleaseSent if a release is under way.
func (h *Hold) Unlock(async bool) (err error) {
	if h == nil || h.section == nil {
		return fmt.Errorf("unlock: %w", ErrNotHeld)
	}
	x, c := h.section, h.section.claim
	l, s := c.lock, c.lock.s
	var d *report.Hold // what the hooks follow the hold by, if anything
	var began time.Duration
	if s.trace != nil {
		d, began = h.traced()
	}
	defer func() {
		if err == errReleaseSent {
			return
		}
		if d != nil {
			d.Left(locktrace.HoldReleased, began, err)
		}
		if err != nil {
			err = opError("unlock", c.prim, err)
		}
	}()
	l.mu.Lock()
	now := s.now()
	if h.held.Done {
		l.unlock()
		return ErrNotHeld
	}
	h.held.Done = true
	open := x.isOpen(now)
	if !open {
		c.expire(now)
	}
	left := x.holds.Remove(&h.held)
	if !open || left > 0 || c.account != nil && c.account.Left > 0 {
		err = h.end(open, left, d, async)
		l.unlock()
		return err
	}
	// Contexts are cancelled without the mutex, for that runs code of the caller's; and before
	// anything else happens, so that no section begins before this one has seen its end.
	if x.close(released) {
		err = ErrLost // the error that hooks get if that code panics: the lock stands until its lease is over
		x.cancelFirst()
		err, now = nil, s.now()
	}
	switch {
	case c.state == lostStanding || c.state == lostGone: // meanwhile
		c.endLost()
		l.unlock()
		return ErrLost
	case c.sectionClosed(now): // or was ended meanwhile: by Close, or by the Unlock of another section
		l.unlock()
		return nil
	case async:
		return c.releaseAsync(now, d)
	}
	return c.release(now, d)
}

// cancelFirst cancels the contexts of a section that was closed, before its claim is handed over or released:
// no other Unlock does that meanwhile. The lock's mutex must be held; it is released meanwhile and held
// again at the end. It stays released if the goroutine ends in the code of a context, by a panic or
// runtime.Goexit: then the other sections go on as if this one's contexts had ended.
func (x *section) cancelFirst() {
	l, m, gone := x.claim.lock, x.claim.account, true
	m.Cancel(1)
	l.unlock()
	defer func() {
		l.mu.Lock()
		if m.Cancel(-1); gone {
			l.unlock()
		}
	}()
	x.cancel(holds.AtOnce)
	gone = false
}

// release sends the release of a claim whose last section has closed, and waits for the
// answer; d is what the hooks follow the hold by, if anything. The lock's mutex must be held and is
// released.
func (c *claim) release(now time.Duration, d *report.Hold) error {
	l, s := c.lock, c.lock.s
	var buf [2]redis.ReleaseCommand
	e := claimRelease{c: c, now: now}
	cmds := e.prepare(buf[:0])
	l.unlock()
	if d != nil {
		return sendTraced(e, cmds, d)
	}
	r, sent := s.redis.Sender.Release(s.releaseLimit.At(now), cmds...)
	l.mu.Lock()
	err := e.answered(cmds, &r, sent)
	l.unlock()
	return err
}

// A claimRelease is the release of a claim, from when it is about to be sent until its answer.
type claimRelease struct {
	c               *claim
	now             time.Duration // when it began
	mustStand       time.Duration // for how long the lock is left standing
	listening       bool          // the session hears what the release publishes
	entering        *claim        // which the release enters in the line
	doubts          uint32        // the session's count of doubts before it was sent
	messageExpected bool          // a message that the session receives says what comes free
	followed        bool          // an attempt of the caller in front was sent behind it
}

// prepare appends the commands, and sets the state that other callers see while the release is under way.
func (e *claimRelease) prepare(cmds []redis.ReleaseCommand) []redis.ReleaseCommand {
	c, now := e.c, e.now
	l, s := c.lock, c.lock.s
	c.become(releasing)
	s.schedule.Set(c, never)
	if s.unrenewed.On.Load() {
		s.unrenewed.Over(c, false)
	}
	e.listening = l.contention != nil && l.contention.listener != nil
	op := Op{Owner: c.ownerID(), N: int(c.n)}
	op.Line.Others = l.contention != nil
	a := l.queue.First
	op.Line.Named, op.Line.Listens = c.kind.Lines, e.listening || c.kind.Lines && !c.kind.Fair && s.lingerUntil.Load() > int64(now) && l.hears(c.prim)
	if c.account != nil {
		e.mustStand = c.mustStand(now)
		op.Lease = e.mustStand
	}
	if a != nil && op.Lease == 0 {
		e.entering = l.enterByRelease(c, &op)
		op.Line.Yields = c.kind.Permits && l.needContention().turns.Yielded() > now
	}
	if e.entering == nil && op.Lease == 0 && (e.listening || op.Line.Yields) {
		l.expectMessage(c, now)
	}
	e.messageExpected = e.listening && e.entering == nil && l.holder != c // a caller that the release enters ignores messages meanwhile
	e.doubts = s.redis.Conn.Doubts.Load()
	return c.account.Releases(cmds, c.prim, op)
}

// answered handles the answer to the commands, or the error that stands for it, and returns the error of the Unlock.
func (e *claimRelease) answered(cmds []redis.ReleaseCommand, r *redis.Released, err error) error {
	c, now := e.c, e.now
	l, s := c.lock, c.lock.s
	if e.mustStand > 0 {
		c.retire(leftStanding)
	} else {
		c.retire(finished)
	}
	switch ct := l.contention; {
	case ct == nil:
	case r.Line.Others: // then its message goes only to sessions that stand in the line
		ct.turns.Released(s.now(), s.now()-now, max(r.Receivers, 1))
		ct.turns.Taken()
		// The session may have been removed from the line if it has sent no sign of life for long: the front sends none while
		// another caller of the session holds the lock.
		e.messageExpected = ct.place.Claim != nil && now-ct.place.Clock.Asked < s.want().Life
	case r.Receivers >= 0:
		others := r.Receivers
		if e.listening && others > 0 {
			others-- // the session's own connection
		}
		ct.turns.Released(s.now(), s.now()-now, others)
		if c.keep > 0 && c.keptLong(now) {
			ct.turns.LeaveToListeners(s.now())
		}
	}
	if r.Line.Position < 0 {
		s.admitMore(cmds[len(cmds)-1].Command)
	}
	if e.entering != nil {
		l.enteredByRelease(e.entering, r, now, e.doubts, err)
		e.messageExpected = e.messageExpected || e.entering.state == asking && r.Line.Position > 0
	}
	// If a message is expected, askAtOnce would cost one attempt more. Where the owner has other holds nothing came
	// free, and the front asks, to stand in the line.
	if l.queue.First != nil && l.holder == nil && (!(e.messageExpected || e.followed) || r.Stays || err != nil || r.Lost) {
		l.askAtOnce()
	}
	if len(r.Unconfirmed) > 0 {
		s.cleanup.Add(redis.Job{Name: c.prim.Names().Name(), Cmds: r.Unconfirmed, Until: c.latestEnd(now), Done: e.enteredLate()})
	}
	if r.Lost && err == nil {
		err = ErrLost
		c.reportLost("it was gone when it was unlocked")
	}
	return err
}

// clearHolder lets the session's other callers ask if none of the holds that the claim still has
// excludes them.
func (c *claim) clearHolder() {
	if l := c.lock; l.holder == c && !c.excludes() {
		l.holder = nil
		l.askAtOnce()
	}
}
