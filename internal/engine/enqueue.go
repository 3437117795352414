package engine

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/backoff"
	"relock/internal/fairqueue"
	"relock/internal/script"
)

// A runCall is one attempt on its way to Redis: a run that queues, or is asked about again.
type runCall struct {
	c     *claim
	op    Op
	g     grant
	err   error
	trust time.Duration // how much of the lease, as the mutex of the lock has seen it
}

// callBatch bounds how many runs are sent in one pipeline.
const callBatch = 64

// callsAnswered takes in the answers to calls that nextCalls has taken off for a caller, and has sent
// what has come meanwhile, and what is unknown.
func (l *lock) callsAnswered(calls []*runCall) {
	l.answered(calls)
	l.line.Sending = false
	l.sendPending()
}

// sendPending has what is pending sent in the background, unless a call is on its way: then it
// goes with the next.
func (l *lock) sendPending() {
	n := l.line
	if n.Sending || !n.Pending() || l.state != lockOpen {
		return
	}
	n.Sending = true
	l.s.life.Background.Go(l.sendAll)
}

// press has what is pending sent at once, if that is urgent, or nothing is left that it gathers for.
func (l *lock) press() {
	if l.line.Flush() {
		l.sendPending()
	}
}

// sendAll sends until nothing is pending. There is at most one for a lock.
func (l *lock) sendAll() {
	s := l.s
	for failures := 0; ; {
		l.mu.Lock()
		if l.line.Pending() && l.line.Gathers() {
			l.unlockBehind()
			l.line.Gather(s.life.Closing)
			l.mu.Lock()
		}
		calls := l.nextCalls()
		if len(calls) == 0 || l.state != lockOpen {
			l.line.Sending = false
			l.unlockBehind()
			return
		}
		l.unlockBehind()
		s.sendCalls(s.life.Closing, calls)
		l.mu.Lock()
		failed := l.answered(calls)
		l.unlockBehind()
		if !failed {
			failures = 0
			continue
		}
		_ = backoff.Pause(s.life.Closing, failures) // when the session closes nothing is sent any more
		failures++
	}
}

// sendCalls sends calls in one pipeline and notes the answers. No mutex may be held. The hooks are
// told by the notifier: a call is for several waiters, and mostly sent in the background.
func (s *Session) sendCalls(ctx context.Context, calls []*runCall) {
	sent, doubts := s.now(), s.redis.Conn.Doubts.Load()
	for i, r := range s.sendAttempts(ctx, calls) {
		e := calls[i]
		e.g.sent, e.g.doubts = sent, doubts
		e.g.until = sent + e.trust
		e.err = e.g.Decode(r, e.c.kind, &e.op)
		if e.err == nil && s.cfg.Replicas > 0 { // of the calls one is granted at most
			e.err = s.acknowledged(ctx, &e.g, e.c.prim, &e.op)
		}
		if s.trace != nil {
			c, g, err := e.c, e.g, e.err
			s.notify(func() { c.traceAttempt(g, err) })
		}
	}
}

// sendAttempts sends the acquire scripts of calls. One that is alone may take the shorter way.
func (s *Session) sendAttempts(ctx context.Context, calls []*runCall) []rueidis.RedisResult {
	if len(calls) == 1 {
		return []rueidis.RedisResult{s.redis.Run.Run(ctx, calls[0].c.prim.Acquire(&calls[0].op))}
	}
	cmds := make([]script.Command, len(calls))
	for i, e := range calls {
		cmds[i] = e.c.prim.Acquire(&e.op)
	}
	return s.redis.Run.Multi(ctx, cmds)
}

// nextCalls takes off what is pending: it is on its way from now on, and who comes meanwhile gathers.
func (l *lock) nextCalls() (calls []*runCall) {
	l.line.Sending = true
	for _, r := range l.line.Collect(callBatch) {
		r.Of.flight = flying
		calls = append(calls, r.Of.call())
	}
	return calls
}

// call returns what is to be sent for a run.
func (c *claim) call() *runCall {
	s, r, k, at := c.lock.s, c.run, c.kind, c.run.Call()
	e := &runCall{c: c, op: Op{Owner: c.ownerID(), N: int(c.n), Lease: min(s.cfg.Lease, c.safeLease), Private: c.num != 0, Position: &at}}
	if r.lease > 0 {
		e.op.Lease = r.lease
	}
	e.trust = trustIn(min(e.op.Lease, c.safeLease))
	e.op.ID = c.account.FirstID(k)
	e.op.ByIDs = e.op.ID != ""
	if k.Fenced {
		e.op.Tokens = c.needAccount().Reserving(max(at.Waiting, 1))
	}
	return e
}

// answered takes in the answers, and reports whether some are missing: what those calls were for
// is pending again.
func (l *lock) answered(calls []*runCall) (failed bool) {
	var again []*fairqueue.Run[claim, acquisition]
	for _, e := range calls {
		c, r := e.c, e.c.run
		c.flight = landed
		if e.err == nil && e.g.Status == granted && l.s.now() >= e.g.until {
			e.err = errLate
		}
		if e.err == nil && e.g.Status == refused {
			l.nextLookOfRuns(e.g.sent, e.g.Value, e.g.Token, e.g.doubts)
		}
		l.noteCall(e)
		if c.state != asking { // it was granted by a message, or has ended
			r.Tell()
			l.overtaken(e)
			continue
		}
		if l.state != lockOpen {
			c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
			continue
		}
		r.err = nil
		switch {
		case e.err == nil && e.g.Status == granted:
			l.begin(c, e.g, e.op.Position.Last)
		case e.err == nil && e.g.Status == refused:
			c.meet(r.Settled(e.g.Position))
		case e.err == nil || script.Classify(e.err) == script.Refused:
			l.turnAway(c, e)
		default:
			failed = true
			if !script.IsContext(e.err) { // that its caller's ended is no news
				r.err = e.err
			}
			back, fate := r.Unanswered()
			if back {
				again = append(again, &r.Run)
			}
			c.meet(fate)
		}
	}
	l.line.PutBack(again)
	return failed
}

// noteCall tells the outage of the answer to a call, or its lack. Of the waiters of a run the
// one in front of the queue counts.
func (l *lock) noteCall(e *runCall) {
	a := l.queue.Front()
	switch {
	case e.err != nil && a != nil:
		a.enterOutage(e.err)
	case e.err == nil && l.s.outage.On.Load():
		for ; a != nil; a = a.node.Next() {
			l.s.outage.Leave(&a.tries.stuck)
		}
		l.s.outage.Answered()
	}
}

// turnAway tells the waiters of a run that Redis refuses it for good.
func (l *lock) turnAway(c *claim, e *runCall) {
	err := e.err
	if err == nil {
		err = e.g.never(c.prim)
	}
	waiters, fate := c.run.Refused()
	for _, a := range waiters {
		a.hopeless = err
		a.wake.Up()
	}
	if script.Midway(e.err) { // it may have the lock, or an entry
		c.endBy(l.s.now()+l.s.cfg.AnswerTime(), c.run.TellAllBut())
		return
	}
	c.meet(fate)
}
