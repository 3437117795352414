package engine

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// The fair queue has the session's waiters that queue in Redis; see [Queuer]. Its mutex is
// the last in order: no other is taken under it.
type fairQueue struct {
	mu      sync.Mutex
	waiters map[string]*fairWaiter // by the id of the attempt
	due     time.Duration          // when the first of them must be heard of
}

// A fairWaiter is one acquisition that waits in Redis. All but the first group is guarded by
// fairQueue.mu.
type fairWaiter struct {
	wake chan struct{} // of the acquisition
	q    Queuer
	id   string
	name string // in the queue in Redis

	grant *grantMessage // the lock was given to it
	look  bool          // ask Redis
	due   time.Duration // when it must be heard of again; never while that is under way
	// An answer of Redis: when it was asked for, and what its clock said in between.
	asked time.Duration
	clock int64
}

// A grantMessage says that the lock was given to a waiter.
type grantMessage struct {
	at    int64 // by Redis's clock, in ms
	token int64
}

// waitInRedis waits in the lock's queue in Redis. The lock's mutex must be held, and is held at
// the end.
func (a *acquisition) waitInRedis(q Queuer) (grant, error) {
	if !a.wait {
		return a.try()
	}
	l := a.lock
	s := l.s
	a.inRedis = true
	var w *fairWaiter
	defer func() { s.fair.remove(w) }()
	for {
		if l.state != lockOpen {
			return grant{}, ErrClosed
		}
		if a.claim == nil { // the waiter is known before the first attempt is sent
			op := a.attempt()
			s.fair.remove(w)
			w = &fairWaiter{wake: a.wake, q: q, id: op.ID, name: q.Waiter(op.Owner, op.ID), due: never}
			s.fair.add(w)
		}
		g, err, done := a.askInRedis(w)
		if done {
			return g, err
		}
		if err != nil || a.claim == nil {
			continue // ask again
		}
		l.unlock()
		if s.cfg.Trace != nil {
			s.cfg.Trace.waiting(a)
		}
		g, ok, err := a.parkInRedis(w)
		l.mu.Lock()
		switch {
		case a.claim.state != asking:
			a.disown()
		case err != nil || ok:
			return g, err
		}
	}
}

// askInRedis asks once; done ends the wait. The lock's mutex must be held, and is held at the
// end.
func (a *acquisition) askInRedis(w *fairWaiter) (g grant, err error, done bool) {
	l := a.lock
	f := &l.s.fair
	f.mu.Lock()
	w.look = false
	f.mu.Unlock()
	g, err = a.ask()
	switch {
	case a.claim.state != asking:
		a.disown()
		return g, nil, false
	case err == nil && g.status == granted:
		return g, nil, true
	case err == nil && g.status == forGood:
		return g, g.never(a.prim), true
	case err == nil:
		l.s.heardOf(w, g.sent, g.value, g.token)
		return g, nil, false
	}
	f.mu.Lock()
	w.look = true // it may be in the queue or not, or have the lock
	f.mu.Unlock()
	return g, err, a.failed(&err)
}

// parkInRedis waits until the lock is given to the waiter, or until Redis must be asked (ok is
// false then).
func (a *acquisition) parkInRedis(w *fairWaiter) (g grant, ok bool, err error) {
	s := a.lock.s
	f := &s.fair
	for {
		f.mu.Lock()
		m, look := w.grant, w.look
		w.grant, w.look = nil, false
		asked, clock := w.asked, w.clock
		f.mu.Unlock()
		if m != nil {
			if g, ok := a.direct(w.q, m, asked, clock); ok {
				if a.done() {
					return g, false, a.ended()
				}
				return g, true, nil
			}
			look = true
		}
		if look {
			return grant{}, false, nil
		}
		a.sleep(never, nil)
		if a.done() {
			a.tries.unknown = true // it is in the queue, or has the lock by now
			return grant{}, false, a.ended()
		}
	}
}

// direct makes a grant of a message, if that can be trusted for a while. When Redis sent it is
// known by Redis's clock only. Since that clock was read, for an earlier answer, at least as
// much time has passed here since that was asked for. A fixed lease begins now, and so needs a
// word with Redis.
func (a *acquisition) direct(q Queuer, m *grantMessage, asked time.Duration, clock int64) (grant, bool) {
	s := a.lock.s
	given := min(asked+time.Duration(m.at-clock-1)*time.Millisecond, s.now())
	g := grant{status: granted, value: 1, token: m.token, sent: given, unconfirmed: q.Unconfirmed(), doubts: s.conn.Doubts()}
	return g, clock > 0 && a.opts.lease == 0 && s.now() < given+trustIn(g.unconfirmed)/2
}

// add puts a waiter on the books.
func (f *fairQueue) add(w *fairWaiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiters[w.id] = w
}

// remove takes it off; nil is no waiter.
func (f *fairQueue) remove(w *fairWaiter) {
	if w == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w.due = never
	delete(f.waiters, w.id)
}

// signal wakes the waiter. fairQueue.mu must be held: the acquisition may be gone else.
func (w *fairWaiter) signal() {
	wakeUp(w.wake)
}

// wakeAll wakes all waiters: the session closes.
func (f *fairQueue) wakeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.waiters {
		w.look = true
		w.signal()
	}
}

// size returns how many waiters there are.
func (f *fairQueue) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiters)
}

// grantPrefix begins the message of a script that has let a waiter in.
const grantPrefix = "grant:"

// granted takes such a message. One that nobody waits for belongs to a waiter that has just
// left: its release passes the lock on.
func (f *fairQueue) granted(payload string) (ok bool) {
	rest, ok1 := strings.CutPrefix(payload, grantPrefix)
	at, rest, ok2 := strings.Cut(rest, ":")
	token, id, ok3 := strings.Cut(rest, ":")
	clock, err1 := strconv.ParseInt(at, 10, 64)
	drawn, err2 := strconv.ParseInt(token, 10, 64)
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.waiters[id]; w != nil {
		w.grant = &grantMessage{at: clock, token: drawn}
		w.signal()
	}
	return true
}
