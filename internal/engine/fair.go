package engine

import (
	"time"
)

// Waiters that queue in Redis; see Queuer. The queue holds runs, and a run is one claim:
//
//		gathering ──sent──▶ asked ──"place"──▶ queued ──granted──▶ held ──no waiter left──▶ released
//		    │                 │ "joined"          │ not in the queue: asked anew    │ it cannot go on
//		    │                 ▼                   ▼                                 ▼
//		    │       its waiters are another's   ended: forced, closed      the rest is a new run, at
//		    └─no waiter left─▶ gone               └─no waiter left─▶ released    the old place
//
//	  - gathering: waiters come while the call of the runs before is on its way. The claim is
//	    asking, and Redis knows nothing of it. Waiters of one kind that take no lease of their own
//	    and name no owner gather; each other waiter is a run of one.
//	  - asked: the attempt is on its way, or its outcome is unknown: then it is sent again, the
//	    same. Either the run has an entry of its own afterwards, or, where the session's last
//	    entry was the last of the queue, its waiters have joined that.
//	  - queued: the entry stands in Redis. Heartbeats keep it; the session is told of the grant,
//	    with the number of the last waiter that Redis counts in the run.
//	  - held: the waiters are served in memory, in their order, one section after the other, with
//	    no time slice. While trust is short, or the claim in doubt, the run is paused until a
//	    renewal has confirmed it.
//
// One call for a lock is on its way at a time, so that what it says of an entry (up to which
// number, how many wait) is true when it is sent, and a call that is sent twice says the same
// twice. A waiter that leaves makes its entry one to be sent; the last one ends the claim, and
// its release takes the entry away.
//
// A waiter belongs to the run of its acquisition.claim, and if that run's waiters have become
// those of another, to that one.
type line struct {
	number  int64         // of the waiter that came last
	pending []*claim      // runs to be sent, in their order
	tail    *claim        // the run that was sent last, if it may still be in the queue
	busy    bool          // a call is on its way, or about to be
	urgent  bool          // what is pending is sent at once
	flush   chan struct{} // capacity 1: what gathers is to be sent
	asked   time.Duration // when Redis's clock was asked for last,
	clock   int64         // and what it said, in ms
}

// A run is what a claim has besides if its waiters queue in Redis. It is guarded by the lock's
// mutex.
type run struct {
	q       Queuer
	entry   string
	lease   time.Duration // of a run of one with a fixed lease; 0: the session's
	last    int64         // number of the last waiter
	until   int64         // held: up to which waiter Redis has let in
	waiting int           // how many wait
	place   int64         // in the queue, 0: not known
	open    bool          // more may join
	pending bool          // it is to be sent
	phase   runPhase
	paused  bool // held without a section, until a renewal confirms it
	flying  bool // a call is on its way

	overtaken bool // releasing: a call was answered that may have come behind the release

	joins   *claim          // asked: the run that this one may have joined
	joiner  *claim          // the run that may have joined this one
	into    *claim          // whose waiters its waiters are now
	err     error           // of the last attempt
	refusal error           // why its waiters wait in vain
	told    []chan struct{} // closed when Redis has been told how many wait
}

type runPhase uint8

const (
	gathering runPhase = iota
	askedFor
	queued
)

// arrive counts a waiter in a run.
func (l *lock) arrive(a *acquisition, q Queuer) {
	if l.line == nil {
		l.line = &line{flush: make(chan struct{}, 1)}
	}
	n := l.line
	n.number++
	a.arrived = int(n.number)
	open := a.named == "" && a.opts.Lease == 0 && l.s.cfg.HandOverLimit >= 0
	var c *claim
	if len(n.pending) > 0 && open {
		c = n.pending[len(n.pending)-1]
	}
	if c == nil || c.state != asking || c.run.phase != gathering || !c.run.open || c.run.place > 0 || c.prim.Kind() != a.prim.Kind() {
		c = l.newRun(a, &run{q: q, open: open, lease: a.opts.Lease})
		n.send(c)
	}
	c.run.waiting++
	c.run.last = n.number
	a.claim = c
}

// newRun makes the claim of a run.
func (l *lock) newRun(a *acquisition, r *run) *claim {
	c := l.newClaim(a)
	c.run = r
	id := ""
	if a.named != "" {
		m := c.account()
		a.identify(m)
		id = m.ids[a.prim.Kind().Side][0]
	}
	r.entry = r.q.Entry(c.ownerID(), id)
	return c
}

// send has a run sent with the next call.
func (n *line) send(c *claim) {
	if !c.run.pending {
		c.run.pending = true
		n.pending = append(n.pending, c)
	}
}

// standing is the run that the waiter is in.
func (a *acquisition) standing() *claim {
	for a.claim != nil && a.claim.run.into != nil {
		a.claim = a.claim.run.into
	}
	return a.claim
}

// queueUp waits in Redis's queue. The lock's mutex must be held and is released.
func (a *acquisition) queueUp(q Queuer) (*section, error) {
	l := a.lock
	a.node.Of = a
	l.queue.Push(&a.node)
	a.queued = true
	l.arrive(a, q)
	switch n := l.line; { // else those who come meanwhile gather
	case n.busy:
	case l.gathers():
		l.sendPending()
	default:
		a.sendOwn()
	}
	err := a.stand()
	if x := a.given.Load(); x != nil {
		l.unlock()
		return a.take(x)
	}
	if c := a.standing(); c != nil && a.tries.err == nil {
		a.tries.err = c.run.err
	}
	a.leave(nil)
	gone := a.leaveRun()
	l.unlock()
	l.tryRetire()
	if gone != nil {
		briefly(gone)
	}
	return nil, err
}

// stand waits until a section is handed to the waiter, or it has to leave. The lock's mutex must
// be held, and is held at the end.
func (a *acquisition) stand() error {
	l := a.lock
	told := false
	for {
		c := a.standing()
		switch {
		case a.given.Load() != nil:
			return nil
		case l.state != lockOpen:
			return ErrClosed
		case c != nil && c.run.refusal != nil:
			return c.run.refusal
		case a.hopeless != nil:
			return a.hopeless
		}
		if c != nil {
			a.tries.err = c.run.err
		}
		l.unlock()
		if !told {
			told = true
			a.traceWaiting()
			outside := !l.s.inSection(a.ctx)
			a.mayBlock()
			l.mu.Lock()
			a.outside = outside
			hopeless := outside && l.s.life.draining.Load()
			if hopeless && a.given.Load() == nil {
				return ErrClosed
			}
			l.unlock()
		}
		if a.deadline == 0 {
			select {
			case <-a.wake:
			case <-a.ctx.Done():
			}
		} else {
			a.sleep(never, nil)
		}
		over := a.done()
		l.mu.Lock()
		if !over || a.given.Load() != nil {
			continue
		}
		if c := a.standing(); c != nil {
			a.tries.err = c.run.err // which may have failed since
		}
		l.unlock()
		err := a.ended()
		l.mu.Lock()
		if a.given.Load() == nil {
			return err
		}
	}
}

// leaveRun takes a waiter that leaves off its run. The channel is closed when Redis knows; it is
// nil if Redis need not know.
func (a *acquisition) leaveRun() <-chan struct{} {
	l, c := a.lock, a.standing()
	a.claim = nil
	if c == nil || c.run.waiting == 0 {
		return nil
	}
	r := c.run
	r.waiting--
	switch {
	case c.state == held && r.paused && r.waiting == 0:
		c.end(c.overAt(l.s.now()), nil)
	case c.state != asking || r.waiting > 0 && r.phase == gathering:
	case r.waiting > 0, r.flying, r.phase == askedFor && r.joins != nil, r.joiner != nil:
		// Others wait; or a release could run before what is on its way, or take away waiters
		// who have just joined.
		told := make(chan struct{})
		r.told = append(r.told, told)
		if r.waiting > 0 || !r.flying {
			l.line.send(c)
			l.hasten()
		}
		return told
	case r.phase == gathering:
		c.retire(over)
	default:
		gone := make(chan struct{})
		c.end(l.s.now()+l.s.cfg.Lease, gone)
		return gone
	}
	return nil
}
