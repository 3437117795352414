package rlock

import (
	"context"
	"time"
)

// A Transferer is a Primitive whose lock may pass from one owner to the next of the same
// session in memory, see [Traits.HandsOver]. It excludes, and its holds have no ids.
type Transferer interface {
	Primitive

	// Transfer is the script that gives the one hold of an owner to another, for at
	// least lease from now; transfer.lua's shape.
	Transfer(from, to string, lease time.Duration) Command
}

// While goroutines of one session wait for the lock that another of them holds, it need
// not travel through Redis between them: the session's lease keeps everybody else out
// already. Unlock lets the next one in at once, and a transfer script, which nobody waits
// for, renames the field of the hash. While one is under way, further hand-overs only
// change who the next will speak of; so Redis sees one script a round trip at most.
//
// Whoever is let in so trusts the lock for no longer than the one before him could, until
// a transfer is confirmed, which is a renewal too. The watchdog leaves such a tenure
// alone meanwhile; a nested Lock waits; a release names every owner that Redis may know.
//
// An owner whose field may still stand in the hash stays on the session's books, so that
// he begins anew only when it is gone: he would re-enter what is somebody else's. Owners
// that anybody outside the session may know are not handed over from at all.

// A transfer makes the hash follow the hand-overs of one lock. It is there until the hash
// is right again, or the run has ended otherwise. Guarded by Session.mu.
type transfer struct {
	p    Transferer
	line *line
	from *tenure // what Redis knew when last heard of
	to   *tenure // what it was told since and may have done; nil: nothing
	cur  *tenure // who has the lock; nil: it is released, or lost
}

const (
	// handOverTime bounds a run of hand-overs while others may wait, beside
	// Config.HandOverLimit. Passing the lock to another process costs some 0.3 ms, so
	// this keeps what is lost by that at 3 %.
	handOverTime = 10 * time.Millisecond

	// handOverAlone bounds it when Redis says that nobody listens: others may poll, or
	// listen where they are not counted. Going through Redis so seldom costs nothing.
	handOverAlone = 100 * time.Millisecond

	// yieldTime is how long the session leaves the lock to others after such a run, at
	// least; in round trips, yieldTrips. Their attempts are there a round trip after the
	// message; the rest is for a busy machine to wake up in.
	yieldTime  = 500 * time.Microsecond
	yieldTrips = 3
)

// A run is what a line knows of the hand-overs since the lock came from Redis.
type run struct {
	began   time.Duration // when the lock came from Redis
	passes  int           // hand-overs since
	others  int64         // who listened beside this session, as of
	heard   time.Duration
	trip    time.Duration // how long the last transfer took
	yielded time.Duration // until when the lock is left to others
	echo    bool          // the message of that release is still to come
}

// goesOn reports whether the run may be continued. Session.mu must be held.
func (r *run) goesOn(limit int, now time.Duration) bool {
	if r.passes < limit && now < r.began+handOverTime {
		return true
	}
	alone := r.heard > 0 && r.others == 0 && now < r.heard+handOverTime
	return alone && now < r.began+handOverAlone
}

// successor returns who may be let in when the last hold of t ends, nil if that must go
// through Redis. Session.mu must be held.
func (s *Session) successor(t *tenure) *acquisition {
	l := t.line
	if l == nil || l.holder != t || l.front == nil || s.cfg.HandOverLimit < 0 {
		return nil
	}
	pt, a := &t.parts[t.prim.Part()], l.front.a
	now := s.now()
	switch {
	case t.live() != 1 || pt.told() != 1 || !pt.first || pt.auto != 1 || t.untidy || t.doubtful:
		return nil // only what is one hold in Redis and here
	case t.busy && t.transfer == nil, t.turn != nil:
		return nil // something else is under way
	case !t.prim.Traits().HandsOver || !a.p.Traits().HandsOver:
		return nil
	case !a.idle(now) || a.owner != nil || a.o.lease > 0:
		return nil
	case t.trust-now < s.trustIn(s.cfg.Lease)/2:
		return nil
	case !l.run.goesOn(s.cfg.HandOverLimit, now):
		if l.run.passes > 0 { // it has been had for longer than others' share
			l.run.yielded = now + max(yieldTime, yieldTrips*l.run.trip)
		}
		return nil
	}
	return a
}

// idle reports whether a only waits: it has not asked Redis anything whose answer is not
// known, and is not about to leave. Session.mu must be held.
func (a *acquisition) idle(now time.Duration) bool {
	return a.mayWait && !a.handed && !a.trying && !a.sent && !a.mayCome && a.host == nil &&
		a.t.Err() == nil && (a.deadline == 0 || now < a.deadline)
}

// handOver ends t, whose last hold is unlocked, and lets a in. It returns false, and has
// done nothing but end the critical section, if somebody outside knows the owner. Session.mu
// must be held.
func (s *Session) handOver(t *tenure, a *acquisition) bool {
	// Who shares the owner first says so and then looks whether the section has ended.
	t.cancelAll(ErrReleased)
	if t.shared.Load() {
		return false
	}
	l, next, tr := t.line, a.t, t.transfer
	s.forgetDue(t)
	t.first.done = true
	t.first.drop()
	t.state, t.line = ended, nil
	t.parts[t.prim.Part()].first = false

	s.letIn(a, t.trust)
	l.holder, next.line = next, l // the tenure's reference to the line goes along
	// The one in front now is called up when Redis knows of this: there is nothing that he
	// could look after before.
	if unused := l.unlink(&a.w); unused != nil {
		s.afterUnlock(unused.Close)
	}
	l.run.passes++

	if tr == nil {
		tr = &transfer{p: t.prim.(Transferer), line: l, from: t}
		t.busy, t.transfer = true, tr
		s.active++
		s.background.Go(func() { s.follow(tr) })
	}
	tr.cur, next.transfer, next.busy = next, tr, true
	if t == tr.from || t == tr.to {
		t.behind = true
	} else { // Redis has never heard of it
		t.busy, t.transfer = false, nil
		s.forget(t)
	}
	a.handed = true
	a.w.signal()
	return true
}

// letIn makes the tenure of a, which is trusted until a time that another one earned.
// Session.mu must be held.
func (s *Session) letIn(a *acquisition, trust time.Duration) {
	t := a.t
	t.state, t.trust = holding, trust
	s.held[tenureKey{a.p.Key(), t.owner.id}] = t
	t.first = Hold{t: t, part: a.p.Part(), began: s.now(), auto: true}
	pt := &t.parts[a.p.Part()]
	pt.prim, pt.first, pt.live, pt.auto = a.p, true, 1, 1
	pt.life++
	s.reschedule(t)
}

// takeHanded is the end of an acquisition that the lock was handed to. Session.mu must be
// held and is released.
func (a *acquisition) takeHanded() (context.Context, *Hold, error) {
	s, t := a.s, a.t
	delete(s.pending, t)
	h := &t.first
	var err error
	switch {
	case s.closed:
		err = ErrClosed
	case a.caller.Err() != nil:
		err = notAcquired(ctxError(a.caller), nil)
	case t.state != holding || s.now() >= t.trust:
		// It was lost on the way here. What may stand in Redis is released.
		if t.state == holding {
			t.mayStand = true
			t.lose("its lease was over when it was handed over")
		}
		h.done = true
		s.abandon(t, h)
		a.leave(nil)
		*a = acquisition{s: s, p: a.p, o: a.o, caller: a.caller, mayWait: true, start: a.start, deadline: a.deadline}
		return a.begin()
	}
	if err == nil {
		a.leave(nil)
		s.unlock()
		s.cfg.Trace.acquired(a.p.Name(), t.owner.id, 1, s.now()-a.start)
		return t, h, nil
	}
	switch {
	case t.state != holding:
	case t.host != nil:
		h.done = true
		h.drop()
		t.end(err)
	default:
		h.done = true
		if next := s.successor(t); next == nil || !s.handOver(t, next) {
			h.drop()
			s.releaseBehind(t, s.over(t))
		}
	}
	a.leave(nil)
	s.unlock()
	t.cancel(err)
	return nil, nil, err
}

// follow sends transfers until Redis knows who has the lock.
func (s *Session) follow(tr *transfer) {
	defer s.leave()
	for n := 0; ; {
		s.mu.Lock()
		if tr.cur == nil {
			s.unlock()
			return
		}
		if tr.to == nil {
			tr.to = tr.cur
		} // else it may have run; only when that is known is there more to say
		cmd := tr.p.Transfer(tr.from.owner.id, tr.to.owner.id, s.cfg.Lease)
		listens := tr.line.listener != nil
		sent := s.now()
		patience := max(min(s.cfg.Lease/3, (tr.cur.trust-sent)/3), 10*time.Millisecond)
		s.unlock()

		ctx, cancel := context.WithTimeout(s.ctx, patience)
		reply, err := numbers(nil, s.run(ctx, cmd))
		cancel()
		if err == nil && len(reply) != 2 {
			err = errShape
		}
		done := s.followed(tr, reply, err, sent, listens)
		s.cfg.Trace.renewed(1, err)
		switch {
		case done:
			return
		case err == nil:
			n = 0
		case pause(s.ctx, n) != nil:
			return
		default:
			n++
		}
	}
}

// followed takes in the answer to a transfer, and reports whether it was the last.
func (s *Session) followed(tr *transfer, reply []int64, err error, sent time.Duration, listened bool) bool {
	s.mu.Lock()
	defer s.unlock()
	cur := tr.cur
	switch {
	case cur == nil:
		return true // whoever ended it looks after the rest
	case err != nil:
		s.log.Warn("relock: Redis does not know of a hand-over yet, will be tried again", "name", tr.p.Name(), "error", err)
		if cur.live() == 0 {
			cur.passTurn() // it was unlocked by somebody who could wait no longer
			return true
		}
		return s.closed
	case reply[0] != 1:
		cur.lose("it was gone when it was handed over")
		return true
	}
	now := s.now()
	r := &tr.line.run
	r.heard, r.trip, r.others = sent, now-sent, reply[1]
	if listened && tr.line.listener != nil {
		r.others--
	}
	s.takeOff(tr.from)
	tr.from, tr.to = tr.to, nil
	cur.trust = max(cur.trust, sent+s.trustIn(s.cfg.Lease))
	if tr.from != cur {
		s.reschedule(cur)
		return false
	}
	cur.transfer = nil
	cur.renewAt = s.nextLook(cur, sent)
	if cur.doubtful {
		cur.renewAt = now
	}
	s.reschedule(cur)
	tr.line.callUp()
	cur.passTurn()
	return true
}

// takeOff takes an owner off the books whose field is gone from the hash, and lets it
// begin anew. Session.mu must be held.
func (s *Session) takeOff(t *tenure) {
	t.transfer = nil
	s.forget(t)
	t.passTurn()
}

// detach ends the part that t has in a transfer, when t ends otherwise than by a hand-over.
// From now on what t is called in Redis is its own business: one of t.also, or its owner.
// Session.mu must be held.
func (t *tenure) detach() {
	tr := t.transfer
	if tr == nil || tr.cur != t {
		return
	}
	t.transfer, tr.cur = nil, nil
	for _, g := range [...]*tenure{tr.from, tr.to} {
		if g != nil && g != t {
			t.ghosts = append(t.ghosts, g)
			t.also = append(t.also, g.owner.id)
		}
	}
}

// lay takes the owners off the books that t had the lock from. Session.mu must be held.
func (t *tenure) lay() {
	ghosts := t.ghosts
	t.ghosts = nil
	for _, g := range ghosts {
		t.s.takeOff(g)
	}
}

// share notes that somebody else than the session that made the owner may use it from
// here on.
func (o *ctxOwner) share() {
	if o.shared != nil {
		o.shared.Store(true)
	}
}

// settled waits until the session of this process that made the owner has taken a hold
// that it handed over off its books.
func (a *acquisition) settled(o *ctxOwner) error {
	s, key := o.by, tenureKey{a.p.Key(), o.id}
	ctx, cancel := a.bounded(a.caller)
	defer cancel()
	s.mu.Lock()
	for {
		t := s.held[key]
		if t == nil || t.state != ended || !t.behind {
			s.unlock()
			return nil
		}
		if !a.mayWait {
			s.unlock()
			return ErrNotAcquired
		}
		if t.waitTurn(ctx) != nil {
			return a.ended(ctx)
		}
	}
}
