// Package fairqueue is what a session knows of its waiters for one fair lock: how they stand
// together in runs, what Redis is to be told of each run, and what an answer or a message
// changes. It knows neither Redis nor claims, and guards nothing by itself: the mutex of the lock
// does.
//
// The queue in Redis holds entries. An entry is a run: waiters of one session that are served one
// after the other, under one owner.
//
//		Gathering ──Call──▶ Asked ──Settled──▶ Queued ──Begin──▶ In ──End──▶ Over
//		    │                 │                   │                             │
//		    └─ no waiter left ┴── or joined: ─────┘          waiters are left: a new run Replaces it
//		             Over                                    at its old position
//
//	  - Gathering: Redis knows nothing of the run. Waiters of the same kind come into it.
//	  - Asked: a call is on its way, or its outcome is unknown: then it is sent again, the same.
//	    Either the run has an entry of its own afterwards, or, where the session's last entry was
//	    the last of the queue, its waiters have joined that: they are the waiters of the other run
//	    from then on.
//	  - Queued: the entry stands in Redis.
//	  - In: Redis has let the run in, and its waiters are served.
//	  - Over: its claim ends, or has ended.
//
// A call tells the number of the last waiter of a run and how many wait, and never adds. One call
// for a lock is on its way at a time, so that what it says is true when it is sent; and a call
// that is sent twice says the same twice. A waiter that leaves makes its run one to be sent.
package fairqueue

import (
	"context"
	"time"

	"relock/internal/queue"
)

// A Line is the runs of one session for one lock. R is what the session keeps of a run besides, W
// is a waiter. The zero value is empty.
type Line[R, W any] struct {
	// Sending says that a call is on its way, or about to be.
	Sending bool

	runs    queue.Queue[Run[R, W]] // those that are not over
	number  int64                  // of the waiter that came last
	pending []*Run[R, W]           // to be sent, in their order
	urgent  bool                   // what is pending is to be sent at once, by the next Collect
	tail    *Run[R, W]             // the run that was sent last
	flush   chan struct{}          // capacity 1: ends Gather; nil as long as no run was opened
}

// Arrive puts a waiter into the run that gathers, and reports whether there is one of its kind. A
// waiter of the kind nil stands alone.
func (n *Line[R, W]) Arrive(m *Member[R, W], kind any) bool {
	if len(n.pending) == 0 || kind == nil {
		return false
	}
	r := n.pending[len(n.pending)-1]
	if r.phase != gathering || r.position > 0 || r.Kind != kind {
		return false
	}
	n.admit(m, r)
	return true
}

// Open puts a waiter into a run of its own, which begins to gather.
func (n *Line[R, W]) Open(m *Member[R, W], r *Run[R, W]) {
	if n.flush == nil {
		n.flush = make(chan struct{}, 1)
	}
	n.enter(r)
	r.send()
	n.admit(m, r)
}

// enter makes a run one of those that are not over.
func (n *Line[R, W]) enter(r *Run[R, W]) {
	r.line, r.node.Of = n, r
	n.runs.Push(&r.node)
}

func (n *Line[R, W]) admit(m *Member[R, W], r *Run[R, W]) {
	n.number++
	m.number, r.last = n.number, n.number
	r.push(m)
}

// Pending reports whether a run is to be sent.
func (n *Line[R, W]) Pending() bool { return len(n.pending) > 0 }

// Gathers reports whether waiters that have just come shall wait for others: what is pending is not
// urgent, and a run of the session is asked about, in the queue or being served.
func (n *Line[R, W]) Gathers() bool {
	for r := range n.runs.All() {
		if r.phase > gathering && !n.urgent {
			return true
		}
	}
	return false
}

// gatherFor is for how long at most waiters gather while their session has other waiters in the
// queue, or is being served. It is what makes runs long: the waiters of a run that come back one
// by one, and those of several runs, find each other. Without it a lock that several sessions
// contend for would pass from one waiter of one session to one of the next, for ever.
const gatherFor = 2 * time.Millisecond

// Gather waits for other waiters to come, until ctx ends. No mutex may be held, and a run must have
// been opened.
func (n *Line[R, W]) Gather(ctx context.Context) {
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.flush:
	case <-ctx.Done():
	}
}

// Flush reports whether something is to be sent at once: it is urgent, or nothing is left that it
// gathers for. Then Gather ends.
func (n *Line[R, W]) Flush() bool {
	if !n.Pending() || n.Gathers() {
		return false
	}
	select {
	case n.flush <- struct{}{}:
	default:
	}
	return true
}

// Collect takes off the runs that are to be sent, so many at most.
func (n *Line[R, W]) Collect(most int) (runs []*Run[R, W]) {
	n.urgent = false
	select {
	case <-n.flush:
	default:
	}
	for len(n.pending) > 0 && len(runs) < most {
		r := n.pending[0]
		n.pending = n.pending[1:]
		r.pending = false
		if r.phase <= queued {
			runs = append(runs, r)
		}
	}
	if len(n.pending) == 0 {
		n.pending = nil
	}
	return runs
}

// PutBack has runs sent before all others, in their order: those for which Unanswered says so.
func (n *Line[R, W]) PutBack(runs []*Run[R, W]) { n.pending = append(runs, n.pending...) }
