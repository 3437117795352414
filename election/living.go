package election

import (
	"context"
	"slices"
	"sync"

	"relock/internal/engine"
)

// IsLeader reports whether the handle's session leads: whether a leadership that a Campaign or a Run
// of that session has got, through any handle of this name, has not ended. It does not ask Redis, but
// trusts the lease by the monotonic clock, and does not block. It does not tell one candidate of a
// session from another. What it says may be out of date when it returns: work on the context of the
// leadership, and protect what must never happen twice by the term. It is false for a nil or zero
// Election.
func (e *Election) IsLeader() bool {
	if e == nil || e.lock == nil {
		return false
	}
	var few [4]reign // enough for the stack
	for _, r := range living.at(e.seat(), few[:0]) {
		if r.l.hold.Remaining() > 0 && r.section.Err() == nil {
			return true
		}
	}
	return false
}

// A seat is what the candidates of one session stand for.
type seat struct {
	session *engine.Session
	key     string
}

func (e *Election) seat() seat { return seat{e.handle.Session(), e.names.Key()} }

// A reign is a leadership and its context.
type reign struct {
	section context.Context
	l       *Leadership
}

// reigns are the leaderships of this process that have not resigned, and whose contexts have not ended. They are kept beside the
// handles, each of which is as good as any other of its name and session.
type reigns struct {
	mu sync.RWMutex // not held while code of the callers' contexts runs
	of map[seat][]reign
}

var living = reigns{of: map[seat][]reign{}}

// begin notes a leadership, until its context ends, or forget is called: that of a nested one ends with the outermost.
func (x *reigns) begin(at seat, r reign) (forget func()) {
	x.mu.Lock()
	x.of[at] = append(x.of[at], r)
	x.mu.Unlock()
	stop := context.AfterFunc(r.section, func() { x.end(at, r.l) })
	return func() {
		stop()
		x.end(at, r.l)
	}
}

func (x *reigns) end(at seat, l *Leadership) {
	x.mu.Lock()
	defer x.mu.Unlock()
	left := slices.DeleteFunc(x.of[at], func(r reign) bool { return r.l == l })
	if len(left) == 0 {
		delete(x.of, at)
		return
	}
	x.of[at] = left
}

// at appends the leaderships of a seat.
func (x *reigns) at(s seat, to []reign) []reign {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return append(to, x.of[s]...)
}
