package engine

import (
	"time"
)

// What tests see and set: by the clock alone they could not say who waits for whom, or when a
// time slice is over.

// Counts is how much a session keeps account of; all 0 when nothing is held and nobody waits.
type Counts struct {
	Held, Asking, Waiters, Scheduled, Locks, Cleaning int
}

// Counts counts.
func (s *Session) Counts() (n Counts) {
	for _, l := range s.registry.snapshot(false) {
		l.mu.Lock()
		n.Locks++
		for c := l.claims; c != nil; c = c.next {
			if c.state == asking {
				n.Asking++
			} else {
				n.Held++
			}
		}
		for a := l.queue.Front(); a != nil; a = a.node.Next() {
			n.Waiters++
		}
		l.mu.Unlock()
	}
	n.Waiters += s.fair.size()
	n.Scheduled = s.schedule.size()
	s.cleanup.mu.Lock()
	defer s.cleanup.mu.Unlock()
	if s.cleanup.running {
		n.Cleaning = 1
	}
	return n
}

// onLock runs fn with the lock of that family and name, with its mutex held, if the session has
// to do with it.
func (s *Session) onLock(family, name string, fn func(l *lock)) {
	for _, l := range s.registry.find(s.cfg.Prefix + name) {
		if l.kind.Family == family {
			l.mu.Lock()
			fn(l)
			l.unlock()
		}
	}
}

// WaitersOf returns how many callers stand in the session's queue for a lock.
func (s *Session) WaitersOf(family, name string) (n int) {
	s.onLock(family, name, func(l *lock) {
		for a := l.queue.Front(); a != nil; a = a.node.Next() {
			n++
		}
	})
	return n
}

// SliceFor lets the time slice of the claim that is held last for d from now on; it is over at
// once if d is negative.
func (s *Session) SliceFor(family, name string, d time.Duration) {
	s.onLock(family, name, func(l *lock) {
		for c := l.claims; c != nil; c = c.next {
			c.passUntil = s.now() + d
		}
	})
}

// Yield ends the time slice, and leaves the lock to other sessions for d from now on.
func (s *Session) Yield(family, name string, d time.Duration) {
	s.onLock(family, name, func(l *lock) {
		for c := l.claims; c != nil; c = c.next {
			c.passUntil = 0
		}
		l.waiting().turns.LeaveFor(s.now(), d)
		l.callUp()
	})
}

// Awaited reports whether somebody waits for a command of the hold's claim to be answered.
func (h *Hold) Awaited() bool {
	c := h.section.claim
	c.lock.mu.Lock()
	defer c.lock.mu.Unlock()
	return c.more != nil && c.more.free != nil
}
