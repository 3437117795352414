package engine

import (
	"context"
	"time"

	"relock/internal/backoff"
	"relock/internal/script"
)

// A call is one attempt on its way to Redis: a run that queues, or is asked about again.
type call struct {
	c    *claim
	op   Op
	told []chan struct{} // waiters that have left before it was sent

	trusted time.Duration // how much of the lease no other process cuts off

	g   grant
	err error
}

// callBatch bounds how many runs are sent in one pipeline.
const callBatch = 64

// sendOwn sends what is pending on behalf of a caller, who has nothing else to do: the waiter's
// own attempt, as a rule. It ends with the caller's context; what is unknown then is sent again.
// The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) sendOwn() {
	l := a.lock
	calls := l.nextCalls()
	l.line.busy = true
	l.unlock()
	ctx, cancel := a.bounded()
	l.s.sendCalls(ctx, calls)
	cancel()
	a.traced.Attempts++
	l.mu.Lock()
	l.answered(calls)
	l.line.busy = false
	l.sendPending()
}

// sendPending has what is pending sent in the background, unless a call is on its way: then it
// goes with the next.
func (l *lock) sendPending() {
	n := l.line
	if n.busy || len(n.pending) == 0 || l.state != lockOpen {
		return
	}
	n.busy = true
	l.s.life.background.Go(l.sendAll)
}

// sendAll sends until nothing is pending. There is at most one for a lock.
func (l *lock) sendAll() {
	s := l.s
	for failures := 0; ; {
		l.mu.Lock()
		if len(l.line.pending) > 0 && l.gathers() {
			l.unlockBehind()
			l.gather()
			l.mu.Lock()
		}
		calls := l.nextCalls()
		if len(calls) == 0 || l.state != lockOpen {
			l.line.busy = false
			l.unlockBehind()
			l.tryRetire()
			return
		}
		l.unlockBehind()
		s.sendCalls(s.life.closing, calls)
		l.mu.Lock()
		failed := l.answered(calls)
		l.unlockBehind()
		if !failed {
			failures = 0
			continue
		}
		_ = backoff.Pause(s.life.closing, failures) // when the session closes nothing is sent any more
		failures++
	}
}

// sendCalls sends calls in one pipeline and notes the answers. No mutex may be held.
func (s *Session) sendCalls(ctx context.Context, calls []*call) {
	if len(calls) == 1 {
		e := calls[0]
		e.g, e.err = s.tryAcquire(ctx, e.c.prim, &e.op, e.trusted)
	} else {
		cmds := make([]script.Command, len(calls))
		for i, e := range calls {
			cmds[i] = e.c.prim.Acquire(&e.op)
		}
		sent := grant{sent: s.now(), doubts: s.conn.Doubts()}
		for i, r := range s.run.Multi(ctx, cmds) {
			calls[i].g = sent
			calls[i].err = s.decode(&calls[i].g, r, calls[i].c.prim, &calls[i].op, calls[i].trusted)
		}
		for _, e := range calls { // of which one is granted at most
			if e.err == nil && s.cfg.Replicas > 0 {
				e.err = s.acknowledged(ctx, &e.g, e.c.prim, &e.op, e.trusted)
			}
		}
	}
	s.traceCalls(calls)
}

// traceCalls has the hooks told of answers, by the notifier: a call is for several waiters, and
// mostly sent in the background.
func (s *Session) traceCalls(calls []*call) {
	if s.trace == nil {
		return
	}
	for _, e := range calls {
		c, g, err := e.c, e.g, e.err
		s.notify(func() { c.traceAttempt(g, err) })
	}
}

// nextCalls takes off what is pending.
func (l *lock) nextCalls() (calls []*call) {
	n := l.line
	n.urgent = false
	select {
	case <-n.flush:
	default:
	}
	for len(n.pending) > 0 && len(calls) < callBatch {
		c := n.pending[0]
		n.pending = n.pending[1:]
		c.run.pending = false
		if c.state == asking {
			c.run.flying = true
			calls = append(calls, l.callOf(c))
		}
	}
	if len(n.pending) == 0 {
		n.pending = nil
	}
	return calls
}

// callOf returns what is to be sent for a run.
func (l *lock) callOf(c *claim) *call {
	n, r, k := l.line, c.run, c.prim.Kind()
	at := &Place{Entry: r.entry, Last: r.last, Waiting: r.waiting, Open: r.open}
	e := &call{c: c, told: r.told, op: Op{Owner: c.ownerID(), N: int(c.n), Lease: c.uncut(l.s.cfg.Lease), Private: c.num != 0, Wait: true, Place: at}}
	r.told = nil
	switch r.phase {
	case gathering:
		l.s.fair.add(r.entry, c)
		if t := n.tail; t != nil && r.open && r.place == 0 && t.state == asking && t.run.phase == queued &&
			t.run.open && t.prim.Kind() == k {
			r.joins, t.run.joiner = t, c
		}
		r.phase, at.Before = askedFor, r.place
		if r.place == 0 {
			n.tail = c
		}
	case askedFor:
		at.Before = r.place
	}
	if t := r.joins; t != nil {
		at.Join, at.Joined = t.run.entry, t.run.waiting+r.waiting
	}
	if r.lease > 0 {
		e.op.Lease = r.lease
	}
	e.trusted = c.uncut(e.op.Lease)
	if c.num == 0 {
		e.op.ID, e.op.ByIDs = c.more.ids[k.Side][0], true
	}
	if k.Fenced {
		e.op.Tokens = max(r.waiting, 1)
		m := c.account()
		if m.reserved == 0 || e.op.Tokens < m.reserved {
			m.reserved = e.op.Tokens
		}
	}
	return e
}

// answered takes in the answers, and reports whether some are missing: what those calls were for
// is pending again.
func (l *lock) answered(calls []*call) (failed bool) {
	var again []*claim
	for _, e := range calls {
		c, r := e.c, e.c.run
		r.flying = false
		r.told = append(r.told, e.told...)
		if e.err == nil {
			e.err = l.s.late(e.g, e.trusted)
		}
		if e.err == nil && e.g.status == refused {
			l.heardOf(e.g.sent, e.g.value, e.g.token)
		}
		l.noteCall(e)
		if c.state != asking { // it was granted by a message, or has ended
			r.tell()
			l.overtaken(e)
			continue
		}
		if l.state != lockOpen {
			c.end(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
			continue
		}
		r.err = nil
		switch {
		case e.err == nil && e.g.status == granted:
			r.until = e.op.Place.Last
			l.begin(c, e.g)
		case e.err == nil && e.g.status == refused:
			l.settled(c, e.g.place)
		case e.err == nil || script.Classify(e.err) == script.Refused:
			l.turnAway(c, e)
		default:
			failed = true
			if !script.IsContext(e.err) { // that its caller's ended is news to nobody
				r.err = e.err
			}
			if r.waiting == 0 && r.joins == nil {
				c.end(l.s.now()+l.s.cfg.Lease, nil)
			} else if !r.pending {
				r.pending = true
				again = append(again, c)
			}
		}
	}
	l.line.pending = append(again, l.line.pending...)
	return failed
}

// noteCall tells the outage of the answer to a call, or its lack. Of the waiters of a run the
// one in front of the queue counts.
func (l *lock) noteCall(e *call) {
	a := l.queue.Front()
	switch {
	case e.err != nil && a != nil:
		a.enterOutage(e.err)
	case e.err == nil && l.s.outage.on.Load():
		for ; a != nil; a = a.node.Next() {
			a.leaveOutage()
		}
		l.s.endOutage()
	}
}

// settled notes that a run stands in the queue, or has joined another.
func (l *lock) settled(c *claim, place int64) {
	r := c.run
	t := r.joins
	r.joins = nil
	if t != nil && t.run.joiner == c {
		t.run.joiner = nil
	}
	if t != nil && place == 0 {
		l.merge(c, t)
		return
	}
	r.phase, r.place = queued, place
	if r.waiting == 0 { // all have left meanwhile
		gone := r.told
		r.told = nil
		var done chan struct{}
		if len(gone) > 0 {
			done, gone = gone[0], gone[1:]
		}
		for _, ch := range gone {
			close(ch)
		}
		c.end(l.s.now()+l.s.cfg.Lease, done)
		return
	}
	if !r.pending { // else some have left since it was sent
		r.tell()
	}
}

// tell tells waiters that have left that Redis knows.
func (r *run) tell() {
	for _, told := range r.told {
		close(told)
	}
	r.told = nil
}

// turnAway tells the waiters of a run that Redis refuses it for good.
func (l *lock) turnAway(c *claim, e *call) {
	r := c.run
	if r.refusal = e.err; r.refusal == nil {
		r.refusal = e.g.never(c.prim)
	}
	for a := l.queue.Front(); a != nil; a = a.node.Next() {
		if a.standing() == c {
			wakeUp(a.wake)
		}
	}
	r.waiting = 0
	if r.phase == queued {
		c.end(l.s.now()+l.s.cfg.Lease, nil)
	} else {
		c.retire(over)
	}
}
