package rlock

import (
	"context"
	"time"

	"relock/pubsub"
)

// A line is the queue of a session's goroutines for one lock. Only the one in front
// talks to Redis, so that ten thousand goroutines are one contender there. It also
// knows whether one of the session's own owners holds the lock: then not even the
// front asks Redis, since it will be told of the release from here, or by message.
//
// All fields are guarded by Session.mu.
type line struct {
	key         lineKey
	front, back *waiter
	holder      *tenure // an own owner that holds exclusively and is not releasing
	refs        int     // waiters, holders and attempts; at 0 the line goes

	// listener hears of releases. It is there from the first refusal until nobody
	// waits any more.
	listener *pubsub.Listener

	// look says that the front shall try at once: it was woken, or a wake-up was
	// taken by a front that left before it could follow it.
	look bool
	// lookAt is when the front tries without having been woken.
	lookAt time.Duration

	run     run     // of hand-overs in memory
	host    *tenure // whose hold in Redis new readers may share
	readers int     // that read, each with a hold of its own
	limit   limit   // of a Sized primitive, as the front heard last
}

// lineKey: different locks may share a channel ("a" and "{a}" do, by Redisson's rules),
// and different kinds of lock a key.
type lineKey struct{ channel, key string }

// A waiter is one goroutine's place in a line.
type waiter struct {
	a          *acquisition
	next, prev *waiter
	wake       chan struct{} // capacity 1; made when it first has to wait
	size       int64         // how much it waits for, if that is Sized
	number     int           // of those who have queued up in the line
}

// joinLine returns the line in front of p, referenced. Session.mu must be held.
func (s *Session) joinLine(p Primitive) *line {
	key := lineKey{p.Channel(), p.Key()}
	l := s.lines[key]
	if l == nil {
		if n := len(s.spareLines); n > 0 {
			l, s.spareLines = s.spareLines[n-1], s.spareLines[:n-1]
		} else {
			l = new(line)
		}
		l.key = key
		s.lines[key] = l
	}
	l.refs++
	return l
}

// spareLinesKept bounds the lines kept for reuse: enough for a busy session, and
// next to nothing to hold on to.
const spareLinesKept = 64

// leaveLine drops a reference. Session.mu must be held.
func (s *Session) leaveLine(l *line) {
	l.refs--
	if l.refs > 0 {
		return
	}
	delete(s.lines, l.key)
	*l = line{}
	if len(s.spareLines) < spareLinesKept {
		s.spareLines = append(s.spareLines, l)
	}
}

// enqueue puts w at the end. Session.mu must be held.
func (l *line) enqueue(w *waiter) {
	w.prev = l.back
	if l.back != nil {
		l.back.next = w
	} else {
		l.front = w
	}
	l.back = w
}

// remove takes w out and, if it was in front, calls up the next: it has to look
// after the listener and the clock from now on. It returns the listener when nobody
// is left to need it; the caller closes it without the mutex. Session.mu must be
// held.
func (l *line) remove(w *waiter) *pubsub.Listener {
	wasFront := l.front == w
	unused := l.unlink(w)
	if wasFront {
		l.callUp()
	}
	return unused
}

// callUp wakes the one in front, if there is one. Session.mu must be held.
func (l *line) callUp() {
	if l.front != nil {
		l.front.signal()
	}
}

// unlink is remove without the call. Session.mu must be held.
func (l *line) unlink(w *waiter) *pubsub.Listener {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.front = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.back = w.prev
	}
	w.next, w.prev = nil, nil
	if l.front == nil {
		unused := l.listener
		l.listener = nil
		return unused
	}
	return nil
}

// nudge lets the front try at once. Session.mu must be held.
func (l *line) nudge() {
	l.look = true
	l.callUp()
}

// signal wakes w, or lets its next wait return at once. Session.mu must be held.
func (w *waiter) signal() {
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// drain throws away wake-ups that are already there: they were published before
// what the caller is going to do, which will see what they speak of. Session.mu
// must be held.
func (l *line) drain() {
	if l.listener == nil {
		return
	}
	select {
	case <-l.listener.C():
	default:
	}
}

// settle notes that a release of the session's own holder is about to be sent: from
// here on a message means that the lock may be free. Session.mu must be held.
func (l *line) settle(now, floor time.Duration) {
	l.holder = nil
	l.drain()
	l.lookAt = now + floor
	if l.run.yielded > now {
		l.lookAt = l.run.yielded
		l.run.echo = true
	}
	l.callUp()
}

// mayTry says whether w shall ask Redis now. Session.mu must be held.
func (l *line) mayTry(w *waiter, now time.Duration) bool {
	if l.front != w || now < l.run.yielded {
		return false
	}
	return l.look || now >= l.lookAt || (l.holder == nil && l.listener == nil)
}

// next returns when mayTry will be true for the one in front. Session.mu must be held.
func (l *line) next() time.Duration {
	if l.look || (l.holder == nil && l.listener == nil) {
		return l.run.yielded
	}
	return max(l.lookAt, l.run.yielded)
}

// park waits until w may have something to do: it came to the front, was woken, or
// lookAt is reached. patience is how long a waiter that is not in front sleeps at
// most, 0 for as long as it takes. It returns ctx's error when ctx ends. A false
// return without an error means: ask mayTry again.
func (s *Session) park(ctx context.Context, l *line, w *waiter, patience time.Duration) (timedOut bool, err error) {
	s.mu.Lock()
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
	}
	var messages <-chan pubsub.Message
	var clock <-chan time.Time
	inFront := l.front == w
	sleep := patience
	if inFront {
		if l.listener != nil {
			messages = l.listener.C()
		}
		now := s.now()
		if l.mayTry(w, now) { // the time to yield may have ended just now
			s.unlock()
			return false, nil
		}
		sleep = max(l.next()-now, time.Microsecond)
	}
	s.unlock()

	if sleep > 0 {
		timer := time.NewTimer(sleep)
		defer timer.Stop()
		clock = timer.C
	}
	select {
	case <-w.wake:
	case <-messages:
		s.mu.Lock()
		switch {
		case l.holder != nil:
			// No release can be meant while an own owner holds the lock: it is an echo.
		case l.run.echo:
			l.run.echo = false // of the release after which the lock is left to others
		default:
			l.look = true
			l.run.released(s.now())
		}
		s.unlock()
	case <-clock:
		return !inFront, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}

// minPause is the least time between two looks that nobody asked for. PTTL counts
// whole milliseconds, so a shorter one would see the same.
const minPause = time.Millisecond
