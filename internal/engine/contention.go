package engine

import (
	"math/rand/v2"
	"time"

	"relock/internal/clock"
	"relock/internal/kind"
	"relock/internal/waiting"
	"relock/pubsub"
)

// contention is the part of a lock's state that exists only while callers wait, a function is deferred, or the session
// keeps the lock. It is guarded by the lock's mutex.
type contention struct {
	// listener hears of releases. It is there from the first refusal until no caller waits; for a front
	// that stands in the line, while that is the first, but for a moment in the beginning.
	listener    *pubsub.Listener
	everywhere  bool // it hears what is published on any node of a Cluster
	mustHearAll bool // it is to be replaced by one that does

	next  next                 // attempt of the front
	place waiting.Place[claim] // how the session stands in the line of the lock

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

// next is when the caller in front asks Redis, as long as no claim of the session holds the lock. The zero value: at once.
type next struct {
	soon bool          // at once: the front was woken, or an earlier front was woken and left before it could ask
	at   time.Duration // when it asks without that
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
		m.Doubted = true
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
	ct.next.soon = false
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
		ct.next.at = now + l.s.cfg.PollFloor
	}
	if y := ct.turns.Yielded(); y > now {
		ct.next.at, ct.leftAt, ct.leftUntil = y, now, y
	}
	ct.turns.Expect(now)
	l.wakeFront()
}

// nextAttempt returns when the caller, which is in front, asks Redis, if no claim of this session holds the lock: never
// while the session leaves it to others (turns.Yielded). After that the caller asks at once if next.soon says so, or if nothing
// would tell it of a release: it neither listens, nor stands in the line, nor was refused in a session that polls. Else it asks
// at next.at.
func (a *acquisition) nextAttempt() time.Duration {
	ct := a.lock.contention
	waits := ct.listener != nil || ct.place.Claim != nil || a.lock.s.cfg.Polling != nil && a.attempts.refused > 0
	if ct.next.soon || !waits {
		return ct.turns.Yielded()
	}
	return max(ct.next.at, ct.turns.Yielded())
}

// attemptAfter schedules the front's next attempt: at the poll floor, or in ms milliseconds if Redis said that the lock may
// be free then and that is sooner (-1: Redis does not know).
func (l *lock) attemptAfter(ms int64) {
	ct, sleep := l.needContention(), l.s.cfg.PollFloor
	if ct.place.Claim != nil {
		sleep = min(sleep, waiting.LongestInterval)
	}
	// Up to a tenth less than the floor, so that the waiters of many sessions do not go on asking
	// at the same moment.
	sleep -= time.Duration(rand.Int64N(int64(sleep)/10 + 1))
	if ms >= 0 && ms < sleep.Milliseconds() {
		sleep = time.Duration(ms+1) * time.Millisecond // PTTL is rounded down by up to a millisecond
	}
	ct.next.at = l.s.now() + max(sleep, clock.Least)
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
	for at := a.node.Next; at != nil; at = at.Next {
		if w := at.Of; m.Excludes(w.arrived, w.n) {
			w.waitErr = answer{Answer: kind.Answer{Value: g.Limit}}.never(w.prim)
			w.wake.Up()
		}
	}
	if m.Doubted {
		l.askAtOnce()
	}
}
