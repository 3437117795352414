package engine

import (
	"time"

	"relock/internal/fairqueue"
	"relock/internal/waiting"
)

// Waiters that queue in Redis; see [kind.Kind.Fair]. The line holds runs, and a run is one claim. How runs
// gather waiters, join each other and replace each other is package fairqueue's; its comment
// draws the phases. This is what the phases are to a claim:
//
//   - Gathering: the claim is asking, and Redis knows nothing of it. Waiters that take no lease of
//     their own and name no owner gather; each other waiter is a run of one.
//   - Asked: the attempt is on its way, or its outcome is unknown.
//   - Queued: heartbeats keep the entry in Redis; the session is told of the grant, with the
//     number of the last waiter that Redis counts in the run.
//   - In: the claim is held. The waiters are served in memory, in their order, one section after
//     the other, with no time slice. While trust is short, or the claim in doubt, the run is
//     paused until a renewal has confirmed it.
//   - Over: the claim is releasing, or gone. What is left is a new run, at the old position.
//
// A waiter stands in lock.queue too: there Close, Shutdown, the outage, a TryLock and the registry
// see that callers wait. Its order is that of its run.

// A run is what a claim has besides if its waiters queue in Redis. It is guarded by the lock's
// mutex.
type run struct {
	fairqueue.Run[claim, acquisition]
	lease  time.Duration // of a run of one with a fixed lease; 0: the session's
	id     string        // of the hold of a named owner
	paused bool          // held without a section, until a renewal confirms it
	err    error         // of the last attempt
}

// A line is the runs of a lock.
type line = fairqueue.Line[claim, acquisition]

// arrive puts a waiter into a run.
func (l *lock) arrive(a *acquisition) {
	if l.line == nil {
		l.line = new(line)
	}
	a.member.Of = a
	if !l.line.Arrive(&a.member, a.gathersWith()) {
		l.line.Open(&a.member, l.newRun(a))
	}
}

// gathersWith is what the waiters have in common that may stand in one run with a; nil: none may.
func (a *acquisition) gathersWith() any {
	if a.named != "" || a.opts.Lease > 0 || a.lock.s.cfg.HandOverLimit < 0 {
		return nil
	}
	return a.kind
}

// newRun makes a run with its claim, for a waiter and what gathers with it.
func (l *lock) newRun(a *acquisition) *fairqueue.Run[claim, acquisition] {
	c := l.newClaim(a)
	c.run = &run{lease: a.opts.Lease, id: c.account.FirstID(c.kind)}
	r := &c.run.Run
	r.Of, r.Kind = c, a.gathersWith()
	s := l.s
	w := waiting.Want{Session: s.id, Fair: true, Named: c.num == 0, ID: c.run.id, Alone: r.Kind == nil,
		Deaf: s.redis.Inbox.Deaf(), Lease: min(s.givenFor(), s.cfg.QueueLease/4), Life: s.cfg.QueueLease / 2}
	switch {
	case w.Deaf: // it learns of the lock when it looks
		w.Lease = s.cfg.QueueLease / 4
	case c.kind.Fenced && r.Kind != nil:
		w.Tokens = waiting.AsManyAsWait
	}
	if c.kind.Fenced && r.Kind == nil {
		w.Tokens = 1
	}
	r.Entry = c.prim.(Liner).Entry(w.Head()) + c.ownerID()
	return r
}

// queueUp has a waiter queue in Redis. The lock's mutex must be held; it may be released meanwhile, and
// is held again at the end.
func (a *acquisition) queueUp() {
	l := a.lock
	l.arrive(a)
	switch n := l.line; {
	case n.Sending:
	case n.Gathers():
		l.sendPending()
	default: // by the caller itself, which has nothing else to do
		calls := l.nextCalls()
		l.unlock()
		ctx, cancel := a.bounded(a.ctx)
		l.s.sendCalls(ctx, calls)
		cancel()
		l.mu.Lock()
		l.callsAnswered(calls)
		a.traced.Attempts++
	}
}

// leaveRun takes a waiter that leaves off its run. The channel is closed when Redis knows; it is
// nil if Redis need not know.
func (a *acquisition) leaveRun() <-chan struct{} {
	l, c := a.lock, a.member.Run.Of
	told, fate := a.member.Leave(c.flight == flying)
	c.meet(fate)
	l.press()
	return told
}

// meet does with the claim of a run what follows from the run's fate.
func (c *claim) meet(f fairqueue.Fate) {
	switch f {
	case fairqueue.Ends:
		c.end(c.run.TellAllBut())
	case fairqueue.Gone:
		c.retire(finished)
	}
}
