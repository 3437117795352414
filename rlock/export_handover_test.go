package rlock

import "time"

// What the tests of hand-overs in memory see and set: by the clock alone they could not say
// when a run of hand-overs is over, or who waits for whom.

// onLine runs fn with the session's line for name, if there is one.
func (s *Session) onLine(name string, fn func(l *line)) {
	names, _ := s.Names(name)
	m := newMutexPrimitive(names, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[lineKey{m.channel, m.Key()}]; l != nil {
		fn(l)
	}
}

// RunFor lets the run of hand-overs that has begun with the hold of name last for d from now
// on, up to Config.HandOverLimit; it is over at once if d is negative.
func (s *Session) RunFor(name string, d time.Duration) {
	s.onLine(name, func(l *line) { l.run.began = s.now() + d })
}

// LeaveToOthers ends that run, and leaves the lock to other sessions for d from now on.
func (s *Session) LeaveToOthers(name string, d time.Duration) {
	s.onLine(name, func(l *line) {
		l.run.began, l.run.passes = s.now()-time.Hour, 0
		l.run.yielded = s.now() + d
		l.callUp()
	})
}

// Awaited reports whether somebody waits for the turn of the owner of h.
func (h *Hold) Awaited() bool {
	s := h.t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.t.turn != nil
}

// PeekID is Owner, but does not make the owner known.
func (h *Hold) PeekID() string { return h.t.owner.id }
