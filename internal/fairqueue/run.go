package fairqueue

import "relock/internal/queue"

// A phase is how far a run has come; the comment of the package draws them.
type phase uint8

// The phases, in their order.
const (
	gathering phase = iota
	asked
	queued
	in
	over
)

// A Fate says what becomes of a run's claim.
type Fate uint8

const (
	// Lives: it goes on.
	Lives Fate = iota
	// Ends: what may stand of it in Redis is to be released.
	Ends
	// Gone: nothing of it stands.
	Gone
)

// A Run is waiters of one session that are served under one owner. Of, Entry and Kind are set
// before it is used.
type Run[R, W any] struct {
	Of    *R
	Entry string
	Kind  any // what its waiters have in common; nil: no other waiter may come into it

	line     *Line[R, W]
	phase    phase
	pending  bool  // it is to be sent
	position int64 // in the queue, 0: not known
	last     int64 // number of the last waiter
	until    int64 // in: up to which waiter Redis has let it in
	said     int64 // the number that Redis was told last
	waiting  int   // how many wait
	members  queue.Queue[Member[R, W]]
	node     queue.Node[Run[R, W]] // of the line's runs, until it is over

	joins  *Run[R, W]      // asked: the run that this one may have joined
	joiner *Run[R, W]      // the run that may have joined this one
	heir   *Run[R, W]      // the run that has replaced this one
	told   []chan struct{} // closed when Redis has been told how many wait
}

// A Position is what an attempt says of a run that queues. One without an entry says that there are
// waiters of the session before it: it may only re-enter a lock that its owner has.
type Position struct {
	Entry   string
	Join    string // the entry to join if it is the last of the queue; "": none
	Last    int64  // number of the last waiter
	Waiting int    // how many wait
	Joined  int    // how many do together with those of Join
	Before  int64  // the position that the run had before; 0: it gets one at the end
	Again   bool   // the entry may stand in the queue
}

// Waiting returns how many wait.
func (r *Run[R, W]) Waiting() int { return r.waiting }

// SendNow has the run sent, at once.
func (r *Run[R, W]) SendNow() {
	r.send()
	r.line.urgent = true
}

// send has the run sent with the next call.
func (r *Run[R, W]) send() {
	if !r.pending {
		r.pending = true
		r.line.pending = append(r.line.pending, r)
	}
}

// Call returns what the call says that is about to be sent for a run.
func (r *Run[R, W]) Call() Position {
	n := r.line
	p := Position{Entry: r.Entry, Last: r.last, Waiting: r.waiting, Again: r.phase > gathering}
	switch r.phase {
	case gathering:
		if t := n.tail; t != nil && r.Kind != nil && r.position == 0 && t.phase == queued && t.Kind == r.Kind {
			r.joins, t.joiner = t, r
		}
		if r.position == 0 {
			n.tail = r
		}
		r.phase = asked
		fallthrough
	case asked:
		p.Before = r.position
	}
	r.said = r.last
	if t := r.joins; t != nil {
		p.Join, p.Joined = t.Entry, t.waiting+r.waiting
		t.said = r.last
	}
	return p
}

// Settled takes in the answer that the run has a position in the queue, or, with a position of 0, that
// it has joined the other one.
func (r *Run[R, W]) Settled(position int64) Fate {
	t := r.joins
	r.joins = nil
	if t != nil && t.joiner == r {
		t.joiner = nil
	}
	if t != nil && position == 0 {
		r.merge(t)
		return Gone
	}
	r.phase, r.position = queued, position
	switch {
	case r.waiting == 0: // all have left meanwhile
		return Ends
	case !r.pending: // else some have left since the call was sent
		r.Tell()
	}
	return Lives
}

// Unanswered takes in that a call got no answer, and whether the run is to be put back. A run
// without a waiter is not sent again, unless it may have taken waiters along to another one.
func (r *Run[R, W]) Unanswered() (back bool, f Fate) {
	if r.waiting == 0 && r.joins == nil {
		return false, Ends
	}
	back, r.pending = !r.pending, true
	return back, Lives
}

// Refused takes in that Redis refuses the run for good. It no longer has the waiters, which are
// returned.
func (r *Run[R, W]) Refused() (waiters []*W, f Fate) {
	for m := r.First(); m != nil; m = r.First() {
		waiters = append(waiters, m.Of)
		r.Remove(m)
	}
	if r.phase == queued {
		return waiters, Ends
	}
	return waiters, Gone
}

// LetIn takes in a message that the run was let in, at a position and up to the waiter with that
// number. If the call by which other waiters have joined it is on its way, they are in too: their
// own run, which is returned, is gone.
func (r *Run[R, W]) LetIn(last, position int64) (joined *R) {
	if j := r.joiner; j != nil && j.phase < in && j.last <= last {
		j.merge(r)
		joined = j.Of
	}
	r.joiner, r.position = nil, position
	return joined
}

// merge makes the waiters of a run those of another one that Redis has found them in, or of the
// run that has replaced that. If it is over by now, they stay, and have its position.
func (r *Run[R, W]) merge(t *Run[R, W]) {
	for t.heir != nil {
		t = t.heir
	}
	if t.phase == over {
		r.position = t.position
		return
	}
	r.moveTo(t)
	// Some may have left meanwhile; or what was sent for the other run behind the call by which
	// this one has joined it has Redis count it no further than before.
	if (r.pending || len(r.told) > 0 || t.said < t.last) && t.phase < in {
		t.SendNow()
	}
	t.told, r.told = append(t.told, r.told...), nil
	if r.line.tail == r {
		r.line.tail = t
	}
}

// Begin has the run served from now on, up to the waiter with that number.
func (r *Run[R, W]) Begin(until int64) { r.phase, r.joins, r.until = in, nil, until }

// Next returns the first waiter that Redis has let in and that can be served; nil if there is none.
func (r *Run[R, W]) Next(can func(*W) bool) *W {
	for m := r.First(); m != nil && m.number <= r.until; m = m.Next() {
		if can(m.Of) {
			return m.Of
		}
	}
	return nil
}

// End notes that the run's claim ends. Waiters that are left need another run, see Replace.
func (r *Run[R, W]) End() {
	if r.phase < over {
		r.phase = over
		r.line.runs.Remove(&r.node)
	}
}

// Replace moves the waiters of a run that cannot go on to a new one. That gets the old position,
// before all that came later, and is sent before all others.
func (r *Run[R, W]) Replace(next *Run[R, W]) {
	n := r.line
	n.enter(next)
	next.position = max(r.position, 1)
	r.moveTo(next)
	r.heir = next
	next.pending = true
	n.pending = append([]*Run[R, W]{next}, n.pending...)
	n.urgent = true
}

// Tell tells the waiters that have left that Redis knows.
func (r *Run[R, W]) Tell() {
	for _, told := range r.told {
		close(told)
	}
	r.told = nil
}

// TellAllBut tells them too, but for the one that left last, if there is one: its channel is for
// the caller to close.
func (r *Run[R, W]) TellAllBut() (last chan struct{}) {
	if n := len(r.told) - 1; n >= 0 {
		last, r.told = r.told[n], r.told[:n]
	}
	r.Tell()
	return last
}
