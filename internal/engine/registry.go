package engine

import "sync"

// The registry has the locks that the session has to do with. Its mutex comes before those of
// the locks.
type registry struct {
	mu    sync.Mutex
	locks map[string]map[string]*lock // by family and key
}

// lockFor returns the lock of a handle, with its mutex held, or ErrClosed. It is looked up
// anew, or made, only if it has left the registry since the handle was used last.
func (h *Handle) lockFor() (*lock, error) {
	if l := h.cached.Load(); l != nil {
		l.mu.Lock()
		switch l.state {
		case lockOpen:
			return l, nil
		case lockClosed:
			l.unlock()
			return nil, ErrClosed
		}
		l.mu.Unlock()
	}
	s, key := h.s, h.names.Key()
	r := &s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	locks := r.locks[h.kind.Family]
	if locks == nil {
		locks = map[string]*lock{}
		r.locks[h.kind.Family] = locks
	}
	l := locks[key]
	if l == nil {
		if err := s.life.Enter(); err != nil {
			return nil, err
		}
		l = &lock{s: s, Names: h.names}
		locks[key] = l
	}
	h.cached.Store(l)
	l.mu.Lock()
	if l.state == lockClosed {
		l.unlock()
		return nil, ErrClosed
	}
	return l, nil
}

// tryRetire takes the lock out of the registry if nothing keeps it. A call of a run does, although
// the run may be over: Close waits for what is given back then. It must be called without the mutex.
func (l *lock) tryRetire() {
	r := &l.s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lockDead || l.claims != nil || l.queue.Front() != nil || l.line != nil && l.line.Sending {
		return
	}
	l.state = lockDead
	for _, locks := range r.locks { // few families; to keep it with each lock would cost more
		if locks[l.Key()] == l {
			delete(locks, l.Key())
		}
	}
	l.s.life.Leave()
}

// all returns all locks.
func (r *registry) all() (all []*lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, locks := range r.locks {
		for _, l := range locks {
			all = append(all, l)
		}
	}
	return all
}

// find returns the locks with a key: that of a family, or those of all families if it is "".
func (r *registry) find(key, family string) (found []*lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f, locks := range r.locks {
		if l := locks[key]; l != nil && (f == family || family == "") {
			found = append(found, l)
		}
	}
	return found
}
