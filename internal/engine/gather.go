package engine

import "time"

// gatherFor is for how long at most waiters gather while their session has other waiters in the
// queue, or is being served. It is what makes runs long: the waiters of a run that come back one
// by one, and those of several runs, find each other. Without it a lock that several sessions
// contend for would pass from one waiter of one session to one of the next, for ever.
const gatherFor = 2 * time.Millisecond

// gathers reports whether waiters that have just come shall wait for others: the session has a
// run in the queue or is being served.
func (l *lock) gathers() bool {
	if l.line.urgent {
		return false
	}
	for c := l.claims; c != nil; c = c.next {
		if c.run != nil && (c.state == held || c.state == asking && c.run.phase != gathering) {
			return true
		}
	}
	return false
}

// hasten has what is pending sent at once.
func (l *lock) hasten() {
	n := l.line
	if len(n.pending) == 0 {
		n.urgent = false
		return
	}
	n.urgent = true
	select {
	case n.flush <- struct{}{}:
	default:
	}
	l.sendPending()
}

// gather waits for other waiters to come. No mutex may be held.
func (l *lock) gather() {
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.line.flush:
	case <-l.s.life.closing.Done():
	}
}
