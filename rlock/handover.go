package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// A Transferer is a Primitive whose lock may pass from one owner to the next of the same
// session in memory, see [Traits.HandsOver].
type Transferer interface {
	Primitive

	// Transfer is the script that gives the one hold of an owner to another, for at
	// least lease from now. Its reply is {1, how many listen on Channel or -1}, or
	// {0 or less, 0} if the lock was lost; its state the same when it runs twice.
	Transfer(from, to Entry, lease time.Duration) Command
}

// An Entry is an owner with one hold: with its id, or, if that is empty, the first hold of an
// owner that nobody else knows.
type Entry struct{ Owner, ID string }

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
	from *tenure // what Redis knew when last heard of
	to   *tenure // what it was told since and may have done; nil: nothing
	cur  *tenure // who has the lock; nil: it is released, or lost

	// stop ends the call that is under way, nil if there is none; left is then whose ghosts
	// must stay until it has come back.
	stop context.CancelFunc
	left *tenure
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
	untaken int           // how often in a row nobody took it
}

// yield leaves the lock to others, from now on. Session.mu must be held.
func (r *run) yield(now time.Duration) {
	d := max(yieldTime, yieldTrips*r.trip)
	if n := r.untaken % yieldPatience; n <= yieldSteps {
		d <<= n
	}
	r.yielded = now + min(d, yieldMost)
}

// taken notes that somebody else has got the lock. Session.mu must be held.
func (r *run) taken() {
	if r.yielded > 0 {
		r.yielded, r.untaken = 0, min(r.untaken, yieldSteps)/2
	}
}

// begin notes that the lock has come from Redis. Session.mu must be held.
func (r *run) begin(now time.Duration) {
	if r.yielded > 0 && r.others > 0 {
		r.untaken++
	}
	r.began, r.passes, r.yielded, r.echo = now, 0, 0, false
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
	t.first = Hold{t: t, part: a.p.Part(), began: s.now(), auto: true, id: a.op.ID}
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
		cmd := tr.p.Transfer(Entry{tr.from.owner.id, tr.from.entry}, Entry{tr.to.owner.id, tr.to.entry}, s.cfg.Lease)
		listens := tr.cur.line != nil && tr.cur.line.listener != nil
		sent := s.now()
		patience := max(min(s.cfg.Lease/3, (tr.cur.trust-sent)/3), 10*time.Millisecond)
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		tr.stop = cancel
		s.unlock()

		reply, err := numbers(nil, s.run(ctx, cmd))
		if err == nil && len(reply) != 2 {
			err = errShape
		}
		if _, ok := rueidis.IsRedisErr(err); ok {
			s.keepMeanwhile(ctx, tr)
		}
		cancel()
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
	tr.stop = nil
	switch {
	case cur == nil: // whoever ended it looks after the rest
		if tr.left != nil && tr.left.mayLay {
			tr.left.lay()
		}
		return true
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
	l := cur.line
	if l == nil { // it is unlocked, and Redis has let another owner of the session in since
		l = new(line)
	}
	l.run.heard, l.run.trip, l.run.others = sent, now-sent, reply[1]
	if listened && l.listener != nil {
		l.run.others--
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
	l.callUp()
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
	if tr.stop != nil {
		tr.stop()
		tr.left, t.late = t, tr
	}
	for _, g := range [...]*tenure{tr.from, tr.to} {
		if g != nil && g != t {
			t.ghosts = append(t.ghosts, g)
			t.also = append(t.also, Entry{g.owner.id, g.entry})
		}
	}
}

// lay takes the owners off the books that t had the lock from: none of them stands in Redis
// any more, and no command is on its way that could make one stand there. From here on
// they may begin anew, so a release must not name them. Session.mu must be held.
func (t *tenure) lay() {
	t.mayLay = true
	if t.late != nil && t.late.stop != nil {
		return // when that has come back
	}
	ghosts := t.ghosts
	t.ghosts, t.also, t.late = nil, nil, nil
	for _, g := range ghosts {
		t.s.takeOff(g)
	}
}

// layLater is lay for a tenure that was lost without word from Redis: when it is unlocked, it
// is released there, or else when its lease is surely over. Session.mu must be held.
func (t *tenure) layLater() {
	s := t.s
	if t.layer == nil {
		t.layer = time.AfterFunc(s.over(t)-s.now(), func() {
			s.mu.Lock()
			defer s.unlock()
			t.lay()
		})
	}
}

// keepMeanwhile renews the lock by the name that Redis knows while it refuses a transfer: it
// may be out of memory, or moving the slot.
func (s *Session) keepMeanwhile(ctx context.Context, tr *transfer) {
	keys, args := tr.p.RenewArgs(tr.from.owner.id, 1, false)
	sent := s.now()
	alive, err := numbers(nil, s.run(ctx, Command{
		Script: tr.p.Renew(), Keys: keys, Args: append([]string{itoa(millis(s.cfg.Lease))}, args...),
	}))
	if err != nil || len(alive) == 0 || alive[0] != 1 {
		return // perhaps it knows the next one by now
	}
	s.mu.Lock()
	defer s.unlock()
	if cur := tr.cur; cur != nil {
		cur.trust = max(cur.trust, sent+s.trustIn(s.cfg.Lease))
		s.reschedule(cur)
	}
}

// share notes that somebody else than the session that made the owner may use it from
// here on.
func (o *ctxOwner) share() {
	if o.maker != nil {
		o.maker.shared.Store(true)
	}
}

// tell is share, and waits until what was handed over from the owner stands in Redis no
// more by its name: whoever is told of it could enter there. That ends with the lease if
// Redis is not heard of.
func (o *ctxOwner) tell() {
	o.share()
	t := o.maker
	if t == nil {
		return
	}
	s := t.s
	s.mu.Lock()
	if t.state != ended || t.transfer == nil || t.waitTurn(s.ctx) == nil {
		s.unlock()
	}
}

// settled waits until the session of this process that made the owner has taken a hold
// that it handed over off its books.
func (a *acquisition) settled(o *ctxOwner) error {
	s, key := o.by, tenureKey{a.p.Key(), o.id}
	heed := a.s.newTenure(a.caller, a.p, o) // ends with Close
	a.s.mu.Lock()
	a.s.pending[heed] = struct{}{}
	a.s.unlock()
	defer func() {
		a.s.mu.Lock()
		delete(a.s.pending, heed)
		a.s.unlock()
		heed.cancel(nil)
	}()
	ctx, cancel := a.bounded(heed)
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
