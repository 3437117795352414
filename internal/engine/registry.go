package engine

import "sync"

// The registry has the locks that the session has to do with. Its mutex comes before those of
// the locks.
type registry struct {
	mu     sync.Mutex
	closed bool
	locks  map[string]map[string]*lock // by family and key
	count  int                         // of locks
	calls  int                         // operations that concern no claim
	idle   chan struct{}               // made by idled, closed when nothing is left
}

// lockFor returns the lock of a handle, with its mutex held, or ErrClosed. It is looked up
// anew, or made, only if it has left the registry since the handle was used last.
func (h *Handle) lockFor(k *Kind) (*lock, error) {
	s, key := h.s, h.names.Key()
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
	r := &s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	locks := r.locks[k.Family]
	if locks == nil {
		locks = map[string]*lock{}
		r.locks[k.Family] = locks
	}
	l := locks[key]
	if l == nil {
		l = &lock{s: s, Names: h.names}
		locks[key] = l
		r.count++
	}
	h.cached.Store(l)
	l.mu.Lock()
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
	if l.state == lockDead || l.claims != nil || l.queue.Front() != nil || l.line != nil && l.line.busy {
		return
	}
	l.state = lockDead
	for _, locks := range r.locks {
		if locks[l.Key()] == l {
			delete(locks, l.Key())
		}
	}
	r.count--
	if r.idle != nil {
		r.signalIdle()
	}
}

// enter begins an operation that concerns no claim, and that Close waits for.
func (r *registry) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.calls++
	return nil
}

// leave ends it.
func (r *registry) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls--
	r.signalIdle()
}

// signalIdle wakes Close if nothing is left. The mutex must be held.
func (r *registry) signalIdle() {
	if r.count == 0 && r.calls == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// idled returns a channel that is closed when no lock and no operation is left.
func (r *registry) idled() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.signalIdle()
	return idle
}

// snapshot returns all locks; close says that no caller may enter from now on.
func (r *registry) snapshot(close bool) (all []*lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = r.closed || close
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
