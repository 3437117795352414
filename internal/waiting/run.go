package waiting

import (
	"time"

	"relock/internal/clock"
)

// A phase is how far a run has come; runs.go draws them.
type phase uint8

// The phases, in their order.
const (
	gathering phase = iota
	asked
	queued
	in
	over
)

// A ClaimAction says what is to be done with the claim of a run.
type ClaimAction uint8

const (
	// KeepClaim: it goes on.
	KeepClaim ClaimAction = iota
	// ReleaseClaim: what may stand of it in Redis is to be released.
	ReleaseClaim
	// DropClaim: nothing of it stands.
	DropClaim
)

// A Run is waiters of one session that are served under one owner. Of, Entry, Kind, Lease and ID are set
// before it is used.
type Run[R, W any] struct {
	Of         *R
	Entry      string
	Kind       any           // what its waiters have in common; nil: no other waiter may come into it
	Lease      time.Duration // of a run of one with a fixed lease; 0: the session's
	ID         string        // of the hold of a named owner
	Err        error         // of the last attempt
	MayHaveRun bool          // an attempt had no answer, and is not known not to have run
	Message    *Message      // that came for it while an attempt was under way

	Waiting     int           // how many wait; to be read only
	NextAsk     time.Duration // when its first waiter asks Redis about it; clock.Never: not until an event
	HeartbeatAt time.Duration // queued: when its next heartbeat is due
	Heartbeats  int           // how many were sent since the last attempt

	// Entering says that a release that enters the run is under way. No attempt for the run may be sent meanwhile:
	// its answer could come before that of the release.
	Entering bool

	line     *Runs[R, W]
	phase    phase
	position int64 // in the line, 0: not known
	last     int64 // number of the last waiter
	until    int64 // in: up to which waiter Redis has let it in
	reported int64 // the last waiter's number, as sent to Redis last
	members  Queue[Member[R, W]]
	node     Node[Run[R, W]] // in the queue of Runs, until it is over

	joins     *Run[R, W]      // asked: the run that this one may have joined
	joiner    *Run[R, W]      // the run that may have joined this one
	successor *Run[R, W]      // the run that has replaced this one
	acks      []chan struct{} // of waiters that have left; closed when Redis has been informed
}

// A RunAttempt is what an attempt, or a release that enters the line again, says of a run.
type RunAttempt struct {
	Entry   string
	Join    string // the entry to join if it is the last of the line; "": none
	Last    int64  // number of the last waiter
	Waiting int    // how many wait
	Joined  int    // how many do together with those of Join
	Before  int64  // the position that the run had before; 0: it gets one at the end
	Again   bool   // the entry may stand in the line
}

// AskNow has Redis asked about the run at once.
func (r *Run[R, W]) AskNow() { r.NextAsk = 0 }

// AskAt has Redis asked about the run at a time, or earlier if that was agreed before.
func (r *Run[R, W]) AskAt(at time.Duration) { r.NextAsk = min(r.NextAsk, at) }

// BeginAttempt notes that an attempt for the run is about to be sent, and returns what it says of the run.
func (r *Run[R, W]) BeginAttempt() RunAttempt {
	n := r.line
	r.NextAsk = clock.Never
	if n.gathering == r {
		n.gathering = nil
	}
	p := RunAttempt{Entry: r.Entry, Last: r.last, Waiting: r.Waiting, Again: r.phase > gathering}
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
	r.reported = r.last
	if t := r.joins; t != nil {
		p.Join, p.Joined = t.Entry, t.Waiting+r.Waiting
		t.reported = r.last
	}
	return p
}

// Answered handles the answer that the run has a position in the line, or, with a position of 0, that
// it has joined the other one. left belongs to a run that ends now: it had no waiter, and was kept only because
// this one could have joined it.
func (r *Run[R, W]) Answered(position int64) (act ClaimAction, left *R) {
	if t := r.joins; t != nil && position == 0 {
		r.joins = nil
		if t.joiner == r {
			t.joiner = nil
		}
		r.merge(t)
		return DropClaim, nil
	}
	left = r.part()
	r.phase, r.position = queued, position
	switch {
	case r.Waiting == 0: // all have left meanwhile
		return ReleaseClaim, left
	case r.NextAsk == clock.Never: // else some have left since the attempt was sent
		r.Acknowledge()
	}
	return KeepClaim, left
}

// part notes that the run joins no other one any more, and returns that one if it has no waiter.
func (r *Run[R, W]) part() (left *R) {
	t := r.joins
	r.joins = nil
	if t == nil || t.joiner != r {
		return nil
	}
	if t.joiner = nil; t.Waiting == 0 && t.phase <= queued {
		return t.Of
	}
	return nil
}

// Unanswered notes that an attempt had no answer: it is sent again at a time, unless all waiters have left
// meanwhile. left is as for Answered.
func (r *Run[R, W]) Unanswered(again time.Duration) (act ClaimAction, left *R) {
	if r.Waiting == 0 {
		return ReleaseClaim, r.part()
	}
	r.AskAt(again)
	return KeepClaim, nil
}

// Refused notes that Redis refuses the run for good. It returns the waiters, and the run loses
// them. left is as for Answered.
func (r *Run[R, W]) Refused() (waiters []*W, act ClaimAction, left *R) {
	for m := r.First(); m != nil; m = r.First() {
		waiters = append(waiters, m.Of)
		r.Remove(m)
	}
	if act = DropClaim; r.phase == queued || r.MayHaveRun {
		act = ReleaseClaim
	}
	return waiters, act, r.part()
}

// LetIn handles a message that the run was let in, at a position and up to the waiter with that
// number. If the attempt by which other waiters have joined it is under way, they are in too, and
// their own run, which is returned, is gone.
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
	for t.successor != nil {
		t = t.successor
	}
	if t.phase == over {
		r.position = t.position
		return
	}
	r.moveTo(t)
	// Send it again if a waiter left while the join was under way, or if a later attempt for the other run
	// had a lower last number.
	if (r.NextAsk != clock.Never || len(r.acks) > 0 || t.reported < t.last) && t.phase < in {
		t.AskNow()
	}
	t.acks, r.acks = append(t.acks, r.acks...), nil
	if r.line.tail == r {
		r.line.tail = t
	}
}

// Begin has the run served from now on, up to the waiter with that number. left is as for Answered: Redis may have lost the
// line, and let in the run that was to join another one.
func (r *Run[R, W]) Begin(until int64) (left *R) {
	left = r.part()
	r.phase, r.until = in, until
	return left
}

// Next returns the first waiter that Redis has let in and that can be served; nil if there is none.
func (r *Run[R, W]) Next(can func(*W) bool) *W {
	for n := r.members.First; n != nil && n.Of.number <= r.until; n = n.Next {
		if can(n.Of.Of) {
			return n.Of.Of
		}
	}
	return nil
}

// End notes that the run's claim ends. Waiters that are left need another run, see Replace. If no other run is
// left, the run that gathers asks at once.
func (r *Run[R, W]) End() {
	if r.phase == over {
		return
	}
	n := r.line
	r.phase = over
	n.queue.Remove(&r.node)
	if n.gathering == r {
		n.gathering = nil
	}
	if n.gathering != nil && !n.busy() {
		n.gathering.AskNow()
	}
}

// Replace moves the waiters of a run that cannot go on to a new one. That gets the old position,
// before all that came later.
func (r *Run[R, W]) Replace(next *Run[R, W]) {
	r.line.enter(next)
	next.position = max(r.position, 1)
	r.moveTo(next)
	r.successor = next
}

// Acknowledge notifies the waiters that have left: Redis has been informed.
func (r *Run[R, W]) Acknowledge() {
	for _, ack := range r.acks {
		close(ack)
	}
	r.acks = nil
}

// AcknowledgeAllButLast notifies all of them but the one that left last, if there is one: the caller is to close
// its channel, which is returned.
func (r *Run[R, W]) AcknowledgeAllButLast() (last chan struct{}) {
	if n := len(r.acks) - 1; n >= 0 {
		last, r.acks = r.acks[n], r.acks[:n]
	}
	r.Acknowledge()
	return last
}
