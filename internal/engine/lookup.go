package engine

// The registry has the locks that the session has to do with, and idle ones: those without claims and
// callers, which the handles find again without it. Its mutex comes before those of the locks.

// keptLocks is the most locks with which the registry keeps idle ones: a session that uses a few names
// again and again makes their records once, and one that uses millions does not grow.
const keptLocks = 1024

// lockFor returns the lock of a handle, with its mutex held, or ErrClosed. It is looked up
// anew, or made, only if it has left the registry since the handle was used last.
func (h *Handle) lockFor() (*lock, error) {
	for l := h.cached.Load(); ; {
		if l != nil {
			l.mu.Lock()
			switch l.state {
			case lockOpen:
				if checking {
					l.check()
				}
				return l, nil
			case lockClosed:
				l.unlock()
				return nil, ErrClosed
			}
			l.mu.Unlock()
		}
		var err error
		l, err = h.s.locks.Enter(h.kind.Family, h.names.Key(), func() (*lock, error) {
			return &lock{s: h.s, Names: h.names}, h.s.life.Enter()
		})
		if err != nil {
			return nil, err
		}
		h.cached.Store(l)
	}
}

// idle reports whether nothing keeps the lock. An attempt for a run does, although the run may be over:
// Close waits for what is given back then.
func (l *lock) idle() bool {
	return l.claims == nil && l.queue.First == nil && l.trying == 0 && (l.runs == nil || !l.runs.Asking)
}

// remove takes the lock out of the registry if it is idle. No mutex may be held.
func (l *lock) remove() {
	l.s.locks.Remove(l.Key(), l, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.state == lockDead || !l.idle() {
			return false
		}
		l.state = lockDead
		l.s.life.Leave()
		return true
	})
}
