package waiting

import (
	"time"
)

// The runs of a session that wait for a fair lock. The line in Redis holds entries. An entry of a fair lock is
// a run: waiters of one session that are served one after the other, under one owner.
//
//		Gathering ──BeginAttempt─▶ Asked ──Answered─▶ Queued ──Begin──▶ In ──End──▶ Over
//		    │                        │                   │                      │
//		    └─ no waiter left ───────┴── or joined: ─────┘   waiters are left: a new run Replaces it
//		             Over                                    at its old position
//
//	  - Gathering: Redis knows nothing of the run. Waiters of the same kind come into it.
//	  - Asked: an attempt is under way, or its outcome is unknown: then the same attempt is sent again.
//	    Either the run has an entry of its own afterwards, or, where the session's last entry was
//	    the last of the line, its waiters have joined that: they are the waiters of the other run
//	    from then on.
//	  - Queued: the entry stands in Redis.
//	  - In: Redis has let the run in, and its waiters are served.
//	  - Over: its claim ends, or has ended.
//
// The first waiter of a run asks Redis about it. An attempt has the number of the run's last waiter and how many
// wait, never a difference: so an attempt that is sent twice does no harm. One attempt for a lock is under way at
// a time, so that its numbers are true when it is sent. When a waiter leaves, a further attempt is sent.

// Runs are the runs of one session for one fair lock. R is what the session keeps of a run besides, W
// is a waiter. The zero value is empty. It is guarded by the mutex of the lock.
type Runs[R, W any] struct {
	// Asking says that an attempt is under way.
	Asking bool

	queue     Queue[Run[R, W]] // those that are not over
	number    int64            // of the waiter that came last
	gathering *Run[R, W]       // the run that was opened last, as long as Redis was not asked about it
	tail      *Run[R, W]       // the run that was sent last
}

// gatherFor is for how long at most waiters gather while their session has other waiters in the
// line, or is being served. It is what makes runs long: the waiters of a run that come back one
// by one, and those of several runs, find each other. Without it a lock that several sessions
// contend for would pass from one waiter of one session to one of the next, for ever.
const gatherFor = 2 * time.Millisecond

// Arrive puts a waiter into the run that gathers, if that is of its kind, else into a new run, which begins to
// gather.
func (n *Runs[R, W]) Arrive(m *Member[R, W], now time.Duration, newRun func() *Run[R, W]) {
	r := n.gathering
	if r == nil || m.Kind == nil || r.Kind != m.Kind {
		r = newRun()
		if n.busy() {
			r.NextAsk = now + gatherFor
		}
		n.enter(r)
		n.gathering = r
	}
	n.number++
	m.number, r.last = n.number, n.number
	r.push(m)
}

// enter makes a run one of those that are not over.
func (n *Runs[R, W]) enter(r *Run[R, W]) {
	r.line, r.node.Of = n, r
	n.queue.Push(&r.node)
}

// busy reports whether Redis is asked about a run of the session, or it stands in the line or is served:
// waiters that have just come wait for others then.
func (n *Runs[R, W]) busy() bool {
	for r := range n.queue.All() {
		if r.phase > gathering {
			return true
		}
	}
	return false
}

// Due returns the run that Redis is to be asked about now; nil if there is none, or an attempt is under way.
// Runs come into the line in the order in which they were opened.
func (n *Runs[R, W]) Due(now time.Duration) *Run[R, W] {
	if n.Asking {
		return nil
	}
	another := false // run is to come into the line first
	for r := range n.queue.All() {
		enters := r.phase < queued && r.position == 0 // it has no place yet that it keeps
		if r.phase <= queued && r.Waiting > 0 && r.NextAsk <= now && !r.Entering && !(another && enters) {
			return r
		}
		another = another || enters && r.Waiting > 0
	}
	return nil
}

// Leads reports whether the waiter is to ask Redis about its run now.
func (n *Runs[R, W]) Leads(m *Member[R, W], now time.Duration) bool {
	return m.Run != nil && m.Run.First() == m && m.Run.NextAsk <= now && n.Due(now) == m.Run
}
