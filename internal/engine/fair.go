package engine

import (
	"relock/internal/account"
	"relock/internal/clock"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
)

// Callers who wait for a fair lock; see [kind.Kind.Fair]. All of them stand in the line of the lock: its
// entries are runs, and a run is one claim. How runs gather waiters, join each other and replace each other is
// in package waiting, with a drawing of the phases. This is what the phases are to a claim:
//
//   - Gathering: the claim is asking, and Redis knows nothing of it. Waiters that take no lease of
//     their own and name no owner gather; each other waiter is a run of one.
//   - Asked: the attempt is under way, or its outcome is unknown.
//   - Queued: heartbeats keep the entry in Redis. The message of the grant has the number of the
//     last waiter that Redis counts in the run.
//   - In: the claim is held. The waiters are served in memory, in their order, one section after
//     the other, with no time slice. While trust is short, or the claim in doubt, the next
//     section waits until a renewal has confirmed it.
//   - Over: the claim is releasing, or gone. What is left is a new run, at the old position.
//
// A waiter stands in lock.queue too: there Close, Shutdown, the outage, a TryLock and the registry
// see that callers wait. Its order is that of its run. The first waiter of a run asks Redis about it.

// A run is what a claim has besides if its waiters stand in the line as one entry, and runs are those of one lock. They
// are guarded by the lock's mutex.
type (
	run  = waiting.Run[claim, acquisition]
	runs = waiting.Runs[claim, acquisition]
)

// arrive puts a waiter into a run.
func (l *lock) arrive(a *acquisition) {
	if l.runs == nil {
		l.runs = new(runs)
	}
	a.member.Of = a
	if a.named == "" && !a.opts.Alone() && l.s.cfg.HandOverLimit >= 0 {
		a.member.Kind = a.kind
	}
	l.runs.Arrive(&a.member, l.s.now(), func() *run { return l.newRun(a) })
}

// newRun makes a run with its claim, for a waiter and what gathers with it.
func (l *lock) newRun(a *acquisition) *run {
	c := l.newClaim(a)
	r := &run{Of: c, Kind: a.member.Kind, Lease: a.opts.Lease}
	if c.run = r; c.num == 0 {
		r.ID = c.account.FirstID(c.kind)
	}
	s, w := l.s, l.s.want()
	w.Fair, w.Named, w.ID, w.Alone, w.Deaf = true, c.num == 0, r.ID, r.Kind == nil, s.unheard.Load() != 0 && s.deaf()
	w.Lease, w.Life = min(w.Lease, s.cfg.QueueLease/4), s.cfg.QueueLease/2
	if w.Deaf { // the answer to a heartbeat tells it that it has the lock
		w.Lease = s.cfg.QueueLease / 4
	}
	w.Asks = r.Lease > 0 && r.Lease < w.Lease // no attempt makes a lease shorter: so it is not given the lock for longer than it wants
	switch {
	case !c.kind.Fenced:
	case w.Alone:
		w.Tokens = 1
	default:
		w.Tokens = waiting.AsManyAsWait
	}
	r.Entry = c.prim.(kind.Liner).Entry(w.Head()) + c.ownerID()
	return r
}

// askForRun sends the attempt of the run whose first waiter the caller is, and handles the outcome. The
// caller may be let in meanwhile: the attempt goes on without it. The lock's mutex must be held; it is released
// meanwhile and held again at the end.
func (a *acquisition) askForRun() {
	l, n, r := a.lock, a.lock.runs, a.member.Run
	c, at := r.Of, r.BeginAttempt()
	op := &Op{Owner: c.ownerID(), N: int(c.n), Private: c.num != 0, Run: &at, ID: r.ID}
	op.ByIDs, op.Lease, op.Line.Tells = op.ID != "", min(l.s.cfg.Lease, c.safeLease), a.opts.Bounded
	if r.Lease > 0 {
		op.Lease = r.Lease
	}
	if c.kind.Fenced {
		op.Tokens = c.needAccount().Reserving(max(at.Waiting, 1))
	}
	e := &attempt{c: c, target: c.target, op: op}
	if l.hasAsync {
		a.attachPending()
		e.piggyback = a.piggyback
	}
	n.Asking, c.awaits = true, anAnswer
	l.unlock()
	a.forRun, a.undo = e, (*acquisition).quitRun
	ctx, cancel := a.bounded(a.ctx, true)
	l.s.send(ctx, e)
	cancel()
	a.undo = nil
	l.mu.Lock()
	n.Asking, c.awaits = false, nothing
	a.traced.Attempts++
	a.attempts.Note(&account.Outcome{Err: e.err, Granted: e.Status == granted, Unacknowledged: e.unacknowledged, Sent: e.sent, Now: l.s.now(),
		Others: at.Again && r.Err == nil})
	a.attempts.Forget() // it is the run's
	if e.err != nil || a.attempts.stuck || l.s.outage.On.Load() {
		a.noteOutage(e.err)
	}
	l.runAnswered(e, a.attempts.Failures)
	l.wakeDueRun()
	if a.piggyback != nil {
		a.detachPending()
	}
}

// runAnswered handles the answer to an attempt for a run, or its error, after so many failures in a row.
func (l *lock) runAnswered(e *attempt, failures int) {
	c, r := e.c, e.c.run
	if e.err == nil && e.Status == refused {
		ct := l.needContention()
		ct.place.Clock.Read(e.sent, l.s.now(), e.At, e.doubts)
		if e.Owner != "" {
			ct.holder = holderOf(&e.answer, l.s.now())
		}
		every := l.s.cfg.HeartbeatEvery()
		if l.s.pollPause > 0 {
			every = min(every, l.s.pollPause)
		}
		r.Heartbeats, r.HeartbeatAt = 0, l.s.nextHeartbeat(e.sent, every, e.Value, e.doubts != l.s.redis.Conn.Doubts.Load())
	}
	switch {
	case c.state != asking: // it was ended meanwhile, or its waiters are those of another run
		r.Acknowledge()
		e.takeBack()
		return
	case l.state != lockOpen:
		c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		return
	}
	r.Err = nil
	switch {
	case e.err == nil && e.Status == granted:
		if e.Token > 0 && !e.Changed { // another's script has reserved the tokens before, and how many is not known
			c.needAccount().Exactly(1)
		}
		l.begin(c, e.answer, e.op.Run.Last)
	case e.err == nil && e.Status == refused:
		c.apply(r.Answered(e.Position))
		c.reschedule()
	case e.err == nil || script.Classify(e.err) == script.Refused:
		l.turnAway(e)
	default:
		if !script.IsContext(e.err) { // that its caller's ended is no news
			r.Err = e.err
		}
		r.MayHaveRun = r.MayHaveRun || e.unknown()
		c.apply(r.Unanswered(l.s.now() + clock.Doubling(failures, l.s.pauseAfter())))
	}
	if m := r.Message; m != nil && c.state == asking {
		r.Message = nil
		l.hearRun(c, m)
	}
}

// turnAway ends the waits of a run that Redis refuses for good.
func (l *lock) turnAway(e *attempt) {
	c, err := e.c, e.err
	if err == nil {
		err = e.never(c.prim)
	}
	waiters, act, left := c.run.Refused()
	for _, a := range waiters {
		a.waitErr = err
		a.wake.Up()
	}
	if script.Midway(e.err) { // it may have the lock, or an entry
		c.apply(waiting.KeepClaim, left)
		c.endBy(l.s.now()+l.s.cfg.AnswerTime(), c.run.AcknowledgeAllButLast())
		return
	}
	c.apply(act, left)
}

// wakeDueRun wakes the waiter that is to ask Redis about its run now, if there is one.
func (l *lock) wakeDueRun() {
	if r := l.runs.Due(l.s.now()); r != nil {
		r.First().Of.wake.Up()
	}
}

// wakeFirst wakes the first waiter of the claim's run, if it has one: the time of its next attempt has changed.
func (c *claim) wakeFirst() {
	if w := c.run.First(); w != nil {
		w.Of.wake.Up()
	}
}

// leaveRun removes a waiter that leaves from its run. The channel is closed when Redis has been informed; it is
// nil if Redis need not know.
func (a *acquisition) leaveRun() <-chan struct{} {
	l, c := a.lock, a.member.Run.Of
	acked, act, left := a.member.Leave(c.awaits == anAnswer)
	c.apply(act, left)
	c.wakeFirst()
	l.wakeDueRun()
	return acked
}

// apply does to the claim of a run what the change of the run asks for, and ends left, if that is not nil.
func (c *claim) apply(act waiting.ClaimAction, left *claim) {
	if left != nil {
		left.end(left.run.AcknowledgeAllButLast())
	}
	switch act {
	case waiting.ReleaseClaim:
		c.end(c.run.AcknowledgeAllButLast())
	case waiting.DropClaim:
		c.retire(finished)
	}
}
