package engine

import (
	"time"

	"relock/internal/kind"
	"relock/internal/waiting"
	"relock/pubsub"
)

// A lobby is what a lock needs only when callers wait, something is put off, or the session keeps it. It is guarded by the lock's mutex.
type lobby struct {
	// listener hears of releases. It is there until no caller waits: from the first refusal, or, for a front
	// that stands in the line, from when that has been the first for a moment.
	listener    *pubsub.Listener
	everywhere  bool // it hears what is published on any node of a Cluster
	mustHearAll bool // it is to be replaced by one that does

	look  waiting.Look // of the front
	place place        // in the line of the lock

	// answered: Redis has answered the last attempt of a waiter, or that was given up before Redis had
	// the time to: see attempts.Grace.
	answered bool

	turns             waiting.Turns
	leftAt, leftUntil time.Duration // when the session has left permits to others last, and until when
	parked            []*claim      // permits that wait for the front's answer, see parked.go
	limit             waiting.Limit // of a kind with permits, as the front heard last
	holder            holder        // who had the lock when the session was refused last
	keeper            *keeper       // of a lock that the session may keep; nil until it has
	deferred          []func()
}

// needLobby returns l.lobby, made if need be.
func (l *lock) needLobby() *lobby {
	if l.lobby == nil {
		l.lobby = new(lobby)
	}
	return l.lobby
}

// enterLobby notes that the caller waits where others do, or did. If the lock was told of a limit
// below what it wants, the front asks whether that still holds.
func (a *acquisition) enterLobby() {
	l := a.lock
	m, allowed := &l.needLobby().limit, false
	if a.arrived, allowed = m.Arrive(a.n); !allowed && a.kind.Permits && l.queue.First != &a.node {
		m.Doubt()
		l.nudge()
	}
	l.confirmSoon()
	if l.share != nil && a.kind.Exclusive { // a writer waits
		l.share.passUntil = min(l.share.passUntil, a.start+joinBeforeWriter)
	}
}

// asks notes that the front is about to ask.
func (b *lobby) asks() {
	b.drain()
	b.look.Soon = false
	b.turns.Asked()
	b.limit.Asked()
}

// settle notes that the release of the holder, or of permits, is about to be sent: from here on
// a message means that the lock may be free. There must be a subscription; else the waiters
// wait for the answer.
func (l *lock) settle(c *claim, now time.Duration) {
	b := l.lobby
	permits := c.kind.Permits
	if l.holder != c && !permits {
		return
	}
	if !permits { // of permits, those of others may come free before
		l.holder = nil
		b.drain()
		b.look.At = now + l.s.cfg.PollFloor
	}
	if y := b.turns.Yielded(); y > now {
		b.look.At, b.leftAt, b.leftUntil = y, now, y
	}
	b.turns.Expect(now)
	l.callUp()
}

// released takes in that Redis has heard of a release, how long that took, and how many connections have
// heard its message: this session's among them, if it was listening.
func (b *lobby) released(now, took time.Duration, receivers int64, listening bool) {
	if listening && receivers > 0 {
		receivers--
	}
	b.turns.Released(now, took, receivers)
}

// beginSlice begins the time slice of a claim where callers wait, or did.
func (l *lock) beginSlice(c *claim, now time.Duration) {
	b := l.lobby
	c.passUntil = b.turns.Begin(now)
	if !c.kind.Exclusive {
		return
	}
	b.look.Soon = false
	if l.s.cfg.Polling == nil {
		b.look.At = now + l.s.cfg.PollFloor
	}
}

// nextLook returns when the front asks Redis, if no claim of this session holds the lock.
func (l *lock) nextLook() time.Duration {
	b := l.lobby
	return b.look.Next(b.listener != nil || b.place.Claim != nil || l.polled(), b.turns.Yielded())
}

// polled reports whether the front has been refused in a session that polls: then it asks when its
// Backoff says so. A front that has not asked yet does so at once.
func (l *lock) polled() bool {
	a := l.queue.Front()
	return l.s.cfg.Polling != nil && a != nil && a.tries.refused > 0
}

// lookAfter has the front look again when Redis said that it is worth while, in so many milliseconds.
func (l *lock) lookAfter(ms int64) {
	b, floor := l.needLobby(), l.s.cfg.PollFloor
	if b.place.Claim != nil {
		floor = min(floor, waiting.LongestLook)
	}
	b.look.After(l.s.now(), floor, ms)
}

// hearLimit ends the waits of the callers that want more than the limit in the answer to the front.
// They would hear of it only at their own attempts, which may be long to come.
func (a *acquisition) hearLimit(g grant) {
	l := a.lock
	if !g.Sized || l.queue.First != &a.node {
		return
	}
	m := &l.needLobby().limit
	if !m.Heard(g.Limit) {
		return
	}
	for w := a.node.Next(); w != nil; w = w.node.Next() {
		if m.Excludes(w.arrived, w.n) {
			w.hopeless = grant{Answer: kind.Answer{Value: g.Limit}}.never(w.prim)
			w.wake.Up()
		}
	}
	if m.Doubted() {
		l.nudge()
	}
}
