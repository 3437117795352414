package rlock

import (
	"context"
	"time"
)

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
	// message; the rest is for a busy machine to wake up in. They may be further away: if
	// nobody took the lock, twice as long is left next time, yieldSteps times and at most
	// yieldMost. If then still nobody did, they seem to be asleep, and it begins again after
	// yieldPatience runs.
	yieldTime     = 500 * time.Microsecond
	yieldMost     = 10 * time.Millisecond
	yieldTrips    = 3
	yieldSteps    = 8
	yieldPatience = 128
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
	left    bool          // nobody has taken it since
	untaken int           // how often in a row nobody took it
	owed    int64         // releases of others after which it is left to others still
}

// yield leaves the lock to others, from now on. Session.mu must be held.
func (r *run) yield(now time.Duration) {
	d := yieldTime
	if r.others > 0 {
		d = max(d, yieldTrips*r.trip)
		if n := r.untaken % yieldPatience; n <= yieldSteps {
			d <<= n
		}
	}
	r.yielded = now + min(d, yieldMost)
	r.left, r.owed = true, max(0, r.others-1)
}

// taken notes that somebody else has got the lock. Session.mu must be held.
func (r *run) taken() {
	r.yielded = 0
	if r.left {
		r.left, r.untaken = false, min(r.untaken, yieldSteps)/2
	}
}

// released notes that somebody else has released the lock. Where several others listen, the
// quickest of them has had it, and would have it each time again in turns with this session:
// so it is left to the others once more. Session.mu must be held.
func (r *run) released(now time.Duration) {
	r.taken()
	if r.owed > 0 {
		r.owed--
		r.yielded = now + min(max(yieldTime, yieldTrips*r.trip), yieldMost)
	}
}

// begin notes that the lock has come from Redis. Session.mu must be held.
func (r *run) begin(now time.Duration) {
	if r.left && r.others > 0 {
		r.untaken++
	}
	r.began, r.passes, r.yielded, r.echo, r.left, r.owed = now, 0, 0, false, false, 0
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
	a := l.front.a
	now := s.now()
	switch {
	case t.owner.maker != t || t.untidy || t.doubtful || !t.single():
		return nil // only an owner made here, with one hold in Redis and here
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
			l.run.yield(now)
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

// single reports whether t is one hold, here and in Redis, by the name that a transfer says.
// Session.mu must be held.
func (t *tenure) single() bool {
	pt, other := &t.parts[t.prim.Part()], &t.parts[1-t.prim.Part()]
	return pt.live == 1 && pt.auto == 1 && pt.told() == 1 && pt.first != pt.prim.Traits().ByID &&
		other.live == 0 && other.told() == 0
}

// handOver ends t, whose last hold h is unlocked, and lets a in. It returns false, and has
// done nothing but end the critical section, if somebody outside knows the owner. Session.mu
// must be held.
func (s *Session) handOver(h *Hold, a *acquisition) bool {
	t := h.t
	// Who shares the owner first says so and then looks whether the section has ended.
	t.cancelAll(ErrReleased)
	if t.shared.Load() {
		return false
	}
	l, next, tr := t.line, a.t, t.transfer
	s.forgetDue(t)
	h.drop()
	t.state, t.line = ended, nil
	pt := &t.parts[t.prim.Part()]
	t.entry = ""
	if !pt.first {
		t.entry = pt.ids[0]
	}
	pt.first, pt.ids = false, nil

	s.letIn(a, t.trust)
	l.holder, next.line = next, l // the tenure's reference to the line goes along
	// The one in front now is called up when Redis knows of this: there is nothing that he
	// could look after before.
	if unused := l.unlink(&a.w); unused != nil {
		s.afterUnlock(unused.Close)
	}
	l.run.passes++

	if tr == nil {
		tr = &transfer{p: t.prim.(Transferer), from: t}
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
	t.first = Hold{t: t, part: uint8(a.p.Part()), began: s.now(), auto: true, id: a.op.ID}
	pt := &t.parts[a.p.Part()]
	pt.prim, pt.live, pt.auto, t.entry = a.p, 1, 1, a.op.ID
	if a.op.ID == "" {
		pt.first = true
	} else {
		pt.ids, pt.byID = []string{a.op.ID}, true
	}
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
		h.done = true
		s.abandon(t, h)
	case t.host != nil:
		h.done = true
		h.drop()
		t.end(err)
	default:
		h.done = true
		if next := s.successor(t); next == nil || !s.handOver(h, next) {
			h.drop()
			s.releaseBehind(t, s.over(t))
		}
	}
	a.leave(nil)
	s.unlock()
	t.cancel(err)
	return nil, nil, err
}
