package engine

import (
	"sync"

	"relock/internal/keyname"
	"relock/internal/waiting"
)

// A lock is what a session knows of one lock while it has claims on it or callers that wait for it. An
// idle one, with neither, is kept for its next use: see lookup.go. Its mutex guards it, its claims,
// sections and waiters. The methods of all these are called with that mutex held, but for those whose
// comment says otherwise, those that run code of the caller's, and the exported ones. While it is held
// no code of the caller's or of the client runs, and only mutexes are taken that wait for nothing.
type lock struct {
	s              *Session
	*keyname.Names // of the handle that has used it first

	mu         sync.Mutex
	state      lockState
	hasAsync   bool                       // it has async releases, see async.go
	askingBack bool                       // a session is being asked for it, see askBack
	trying     int32                      // calls of TryLock that are under way: they are not in the queue
	queue      waiting.Queue[acquisition] // callers that wait; the one in front asks Redis, and named owners: see loop
	claims     *claim                     // asking, held and releasing
	// holder is the claim that holds the lock exclusively, or nil. With a subscription it becomes nil
	// when the release is sent (expectMessage), without one when the release is answered.
	holder     *claim
	share      *claim      // that the session's readers may join
	contention *contention // nil until a caller has to wait, or a function is deferred
	runs       *runs       // of a fair lock, once a caller had to wait
}

type lockState uint8

const (
	lockOpen   lockState = iota
	lockClosed           // the session is closing: no caller enters
	lockDead             // not in the registry any more
)

// later has fn called when the mutex is released: for what runs code of the caller's, as
// cancelling contexts and tracing do.
func (l *lock) later(fn func()) {
	ct := l.needContention()
	ct.deferred = append(ct.deferred, fn)
}

// unlock releases the mutex and runs the deferred functions. An idle lock drops its state, and may leave the
// registry, so no other mutex of the order may be held.
func (l *lock) unlock() {
	var fns []func()
	if l.contention != nil {
		fns, l.contention.deferred = l.contention.deferred, nil
	}
	leaves := l.state != lockOpen || l.s.life.Draining.Load() || l.s.locks.Crowded.Load()
	if (leaves || l.contention != nil || l.runs != nil) && l.idle() {
		if ct := l.contention; ct != nil && ct.keeper != nil {
			l.contention = ct.idlePart()
		} else {
			l.contention = nil
		}
		if l.runs != nil {
			*l.runs = runs{} // not nil: what was sent for an earlier run may still be answered
		}
	} else {
		leaves = false
	}
	if checking {
		l.check()
	}
	l.mu.Unlock()
	if leaves {
		l.remove()
	}
	for _, fn := range fns {
		fn()
	}
}

// unlockInBackground is unlock for goroutines that must not run the caller's code: each function
// that was deferred runs in a goroutine of its own.
func (l *lock) unlockInBackground() {
	if l.contention != nil {
		for _, fn := range l.contention.deferred {
			l.s.life.Background.Go(fn)
		}
		l.contention.deferred = nil
	}
	l.unlock()
}

// askAtOnce has the front ask Redis at once.
func (l *lock) askAtOnce() {
	if l.queue.First != nil {
		l.needContention().next.soon = true
		l.wakeFront()
	}
}

// wakeFront wakes the waiter in front, if there is one.
func (l *lock) wakeFront() {
	if l.queue.First != nil {
		l.queue.First.Of.wake.Up()
	}
}

// loseOthers ends the claims that cannot stand any more, since Redis has granted c.
func (l *lock) loseOthers(c *claim) {
	exclusive := c.kind.Exclusive
	for o := l.claims; o != nil; {
		next := o.next
		if o != c && o.state == held && (exclusive || o == l.holder && o.excludes()) &&
			(o.num != 0 || c.num != 0 || o.account.Owner != c.account.Owner) {
			o.lose("another owner was let in", true)
		}
		o = next
	}
}
