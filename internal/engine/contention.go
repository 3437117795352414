package engine

import (
	"time"

	"relock/internal/kind"
	"relock/internal/waiting"
	"relock/pubsub"
)

// contention is the part of a lock's state that exists only while callers wait, a function is deferred, or the session
// keeps the lock. It is guarded by the lock's mutex.
type contention struct {
	// listener hears of releases. It is there until no caller waits: from the first refusal, or, for a front
	// that stands in the line, from when that has been the first for a moment.
	listener    *pubsub.Listener
	everywhere  bool // it hears what is published on any node of a Cluster
	mustHearAll bool // it is to be replaced by one that does

	next  waiting.NextAttempt // of the front
	place place               // in the line of the lock

	// answered: the last attempt of a waiter was answered, or its caller left within account.Grace.
	answered bool

	turns             waiting.Turns
	leftAt, leftUntil time.Duration // when the session has left permits to others last, and until when
	undelivered       []*claim      // permits that wait for the front's answer, see undelivered.go
	limit             waiting.Limit // of a kind with permits, as the front heard last
	holder            holder        // who had the lock when the session was refused last
	keeper            *keeper       // of a lock that the session may keep; nil until it has
	deferred          []func()
}

// needContention returns l.contention, made if need be.
func (l *lock) needContention() *contention {
	if l.contention == nil {
		l.contention = new(contention)
	}
	return l.contention
}

// enterContention notes that the caller waits for a lock for which others wait, or waited. If the caller
// wants more than the last limit of the permits, the front asks Redis whether the limit still holds.
func (a *acquisition) enterContention() {
	l := a.lock
	m, allowed := &l.needContention().limit, false
	if a.arrived, allowed = m.Arrive(a.n); !allowed && a.kind.Permits && l.queue.First != &a.node {
		m.Doubt()
		l.askAtOnce()
	}
	l.confirmSoon()
	if l.share != nil && a.kind.Exclusive { // a writer waits
		l.share.passUntil = min(l.share.passUntil, a.start+joinBeforeWriter)
	}
}

// asks notes that the front is about to ask.
func (ct *contention) asks() {
	ct.drain()
	ct.next.Soon = false
	ct.turns.Asked()
	ct.limit.Asked()
}

// expectMessage notes that the release of the holder, or of permits, is about to be sent: from here on
// a message means that the lock may be free. The session must be subscribed, or yield the permits; without
// either the waiters wait for the answer.
func (l *lock) expectMessage(c *claim, now time.Duration) {
	ct := l.contention
	permits := c.kind.Permits
	if l.holder != c && !permits {
		return
	}
	if !permits { // of permits, those of others may come free before
		l.holder = nil
		ct.drain()
		ct.next.At = now + l.s.cfg.PollFloor
	}
	if y := ct.turns.Yielded(); y > now {
		ct.next.At, ct.leftAt, ct.leftUntil = y, now, y
	}
	ct.turns.Expect(now)
	l.wakeFront()
}

// beginSlice begins the slice of a claim for whose lock callers wait, or waited.
func (l *lock) beginSlice(c *claim, now time.Duration) {
	ct := l.contention
	c.passUntil = ct.turns.Begin(now)
	if !c.kind.Exclusive {
		return
	}
	ct.next.Soon = false
	if l.s.cfg.Polling == nil {
		ct.next.At = now + l.s.cfg.PollFloor
	}
}

// nextAttempt returns when the front asks Redis, if no claim of this session holds the lock.
func (l *lock) nextAttempt() time.Duration {
	ct := l.contention
	return ct.next.Next(ct.listener != nil || ct.place.Claim != nil || l.polled(), ct.turns.Yielded())
}

// polled reports whether the front has been refused in a session that polls: then it asks when its
// Backoff says so. A front that has not asked yet does so at once.
func (l *lock) polled() bool {
	a := l.queue.Front()
	return l.s.cfg.Polling != nil && a != nil && a.attempts.refused > 0
}

// attemptAfter schedules the front's next attempt: in ms milliseconds if Redis said that the lock may be free then, and
// at the poll floor otherwise.
func (l *lock) attemptAfter(ms int64) {
	ct, floor := l.needContention(), l.s.cfg.PollFloor
	if ct.place.Claim != nil {
		floor = min(floor, waiting.LongestInterval)
	}
	ct.next.After(l.s.now(), floor, ms)
}

// hearLimit ends the waits of the callers that want more permits than the limit in the answer to the front. Their
// own first attempts, which would say so, may be a long time away.
func (a *acquisition) hearLimit(g answer) {
	l := a.lock
	if !g.Sized || l.queue.First != &a.node {
		return
	}
	m := &l.needContention().limit
	if !m.Heard(g.Limit) {
		return
	}
	for w := a.node.Next(); w != nil; w = w.node.Next() {
		if m.Excludes(w.arrived, w.n) {
			w.waitErr = answer{Answer: kind.Answer{Value: g.Limit}}.never(w.prim)
			w.wake.Up()
		}
	}
	if m.Doubted() {
		l.askAtOnce()
	}
}
