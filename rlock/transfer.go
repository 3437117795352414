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
		if tr.left != nil && tr.left.debt.mayLay {
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
	now, l := s.now(), cur.line
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

// A debt is what is left to settle when a tenure ends under its transfer: the owners that it
// had the lock from stay on the books, and releases name them, until none of them can stand in
// Redis any more.
type debt struct {
	ghosts []*tenure
	names  []Entry
	late   *transfer   // whose call is still under way
	mayLay bool        // but for that call
	timer  *time.Timer // see layLater
}

// detach ends the part that t has in a transfer, when t ends otherwise than by a hand-over.
// From now on what t is called in Redis is its own business: one of its debt's names, or its owner.
// Session.mu must be held.
func (t *tenure) detach() {
	tr := t.transfer
	if tr == nil || tr.cur != t {
		return
	}
	t.transfer, tr.cur = nil, nil
	t.debt = new(debt)
	if tr.stop != nil {
		tr.stop()
		tr.left, t.debt.late = t, tr
	}
	for _, g := range [...]*tenure{tr.from, tr.to} {
		if g != nil && g != t {
			t.debt.ghosts = append(t.debt.ghosts, g)
			t.debt.names = append(t.debt.names, Entry{g.owner.id, g.entry})
		}
	}
}

// lay takes the owners off the books that t had the lock from: none of them stands in Redis
// any more, and no command is on its way that could make one stand there. From here on
// they may begin anew, so a release must not name them. Session.mu must be held.
func (t *tenure) lay() {
	d := t.debt
	if d == nil {
		return
	}
	d.mayLay = true
	if d.late != nil && d.late.stop != nil {
		return // when that has come back
	}
	t.debt = nil
	if d.timer != nil {
		d.timer.Stop()
	}
	for _, g := range d.ghosts {
		t.s.takeOff(g)
	}
}

// layLater is lay for a tenure that was lost without word from Redis: when it is unlocked, it
// is released there, or else when its lease is surely over. Session.mu must be held.
func (t *tenure) layLater() {
	s := t.s
	if t.debt.timer == nil {
		t.debt.timer = time.AfterFunc(s.over(t)-s.now(), func() {
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
