package engine

import (
	"sync"
	"sync/atomic"
)

// The registry has the locks that the session has to do with, and idle ones: those without claims and
// callers, which the handles find again without it. Its mutex comes before those of the locks.
type registry struct {
	mu    sync.Mutex
	locks map[string]map[string]*lock // by family and key
	size  atomic.Int32                // how many there are
	kept  atomic.Int32                // up to how many idle ones stay: keptLocks
}

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
		if l, err = h.s.registry.enter(h); err != nil {
			return nil, err
		}
		h.cached.Store(l)
	}
}

// enter returns the lock of a handle, made if need be. No mutex may be held.
func (r *registry) enter(h *Handle) (*lock, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	family, key := h.kind.Family, h.names.Key()
	l := r.locks[family][key]
	if l == nil {
		if err := h.s.life.Enter(); err != nil {
			return nil, err
		}
		if r.locks[family] == nil {
			r.locks[family] = map[string]*lock{}
		}
		l = &lock{s: h.s, Names: h.names}
		r.locks[family][key] = l
		r.size.Add(1)
	}
	return l, nil
}

// idle reports whether nothing keeps the lock. A call of a run does, although the run may be over:
// Close waits for what is given back then.
func (l *lock) idle() bool {
	return l.claims == nil && l.queue.Front() == nil && l.trying == 0 && (l.line == nil || !l.line.Sending)
}

// remove takes the lock out of the registry if it is idle. It must be called without the mutex.
func (l *lock) remove() {
	r := &l.s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lockDead || !l.idle() {
		return
	}
	l.state = lockDead
	for _, locks := range r.locks { // few families; to keep it with each lock would cost more
		if locks[l.Key()] == l {
			delete(locks, l.Key())
		}
	}
	r.size.Add(-1)
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
