package engine

import (
	"strings"
	"sync/atomic"
	"time"

	"relock/internal/clock"
	"relock/internal/inbox"
	"relock/internal/kind"
	"relock/internal/waiting"
)

// The line: of each lock that sessions wait for, Redis has a line of their entries. A session has one entry
// for a lock, for the claim of the caller in front of its queue: that caller's attempt enters it, and
// is repeated at each poll floor. A release grants the lock to the first entry, or calls it, by a message to its
// session; package waiting and line.lua of package script have the formats.

// lines is what a session knows for all lines that it stands in.
type lines struct {
	plainHead, oneHead  string       // what most entries begin with, and those for one permit
	readHead, writeHead string       // the same, of readers and writers
	lingerUntil         atomic.Int64 // until when a channel may stay subscribed without a listener: see lock.hears
	slowUntil           atomic.Int64 // until when the session counts as a slow taker, see waiting.SlowFor
	unheard             atomic.Int64 // since when the session may hear nothing on its own channel; 0: it hears. See deaf
	liners              [waiting.Sorts]atomic.Pointer[kind.Liner]
}

// want is what all entries of the session say, but for those of fair locks, for which Config.QueueLease counts.
func (s *Session) want() waiting.Want {
	return waiting.Want{Session: s.id, Lease: min(waiting.GrantLease, s.cfg.Lease),
		Life: waiting.Life(min(s.cfg.PollFloor, waiting.LongestInterval)), Away: 2 * s.redis.Trip}
}

// makeHeads makes the heads of most entries, once it is known how far away Redis is.
func (s *Session) makeHeads() {
	plain := s.want()
	one, read, write := plain, plain, plain
	one.Permits, read.Asks, write.Writes = 1, true, true
	s.plainHead, s.oneHead, s.readHead, s.writeHead = plain.Head(), one.Head(), read.Head(), write.Head()
}

// entryHead is what stands in front of the owner in the entry of a claim that asks.
func (c *claim) entryHead() string {
	s := c.lock.s
	switch {
	case c.run != nil:
		return strings.TrimSuffix(c.run.Entry, c.ownerID())
	case c.kind.Fair: // a TryLock
		return ""
	}
	w := s.want()
	w.Slow = c.except == slowTaker
	w.Writes = c.kind.Writes
	if c.num == 0 {
		w.Named, w.ID = true, c.account.FirstID(c.kind)
	}
	w.Asks = c.noHandOver || c.kind.Shares // a lease of its own; or it is called in any case
	switch {
	case c.kind.Fenced && c.prim.(kind.Liner).Entry("g") != "g": // its tokens have an end: it is called
		w.Asks = true
	case c.kind.Fenced:
		w.Tokens = c.account.Asked()
	case c.kind.Permits:
		w.Permits, w.Asks = int(c.n), w.Asks || c.kind.Unleased
	}
	return c.prim.(kind.Liner).Entry(w.Head())
}

// inLine completes an attempt by how it behaves to the line of its lock. That of a front enters it, if others wait, or
// stands there.
func (a *acquisition) inLine() {
	l, c := a.lock, a.claim
	switch {
	case c.kind.Fair && l.queue.First != nil: // a TryLock of a named owner, which would pass the session's waiters
		a.op.Line.Head = kind.Reenter
		return
	case c.kind.Fair:
		a.op.Line.Head = kind.InTurn
		return
	case !a.op.Wait || l.s.unheard.Load() != 0 && l.s.deaf() && !l.stands(c):
		if a.attempts.pause > 0 {
			a.bookRound()
		}
		return
	case !c.kind.Lines:
		return
	}
	a.op.Line.Head, a.op.Line.Tells = l.s.plainHead, a.opts.Bounded
	switch {
	case c.kind.Permits && a.n == 1 && !c.noHandOver && c.except != slowTaker && !c.kind.Unleased:
		a.op.Line.Head = l.s.oneHead
	case c.num == 0 || c.noHandOver || c.except == slowTaker || c.kind.Fenced || c.kind.Permits:
		a.op.Line.Head = c.entryHead()
	case c.kind.Shares:
		a.op.Line.Head = l.s.readHead
	case c.kind.Writes:
		a.op.Line.Head = l.s.writeHead
	}
	if ct := l.contention; ct != nil {
		a.op.Line.Again = ct.place.Claim == c || a.attempts.MayHaveRun || a.attempts.MayCome
		a.op.Line.Waiting, a.op.Line.Waited = l.waitingToReport(), l.s.now()-a.start
	}
	if l.contention != nil || l.s.lingerUntil.Load() > int64(l.s.now()) {
		a.op.Line.Listens = l.hears(a.prim)
	}
}

// stands reports whether a claim stands in the line, as far as is known.
func (l *lock) stands(c *claim) bool { return l.contention != nil && l.contention.place.Claim == c }

// reconnects is longer than it takes to subscribe again once Redis answers: there is a second between two attempts, at most.
const reconnects = 2 * time.Second

// deaf reports whether no message reaches the session: it could not subscribe to its own channel, or has lost the
// subscription for longer than it takes to connect again, while Redis answers. It stands in no line then, but for those of
// fair locks, where its entries say so: Redis would call it, or give it the lock, in vain. A session that has lost nothing
// has an unheard of 0: the paths that each Lock runs look at that field before they call deaf.
func (s *Session) deaf() bool {
	since := s.unheard.Load()
	switch {
	case s.redis.Inbox.Deaf.Load():
		return true
	case since == 0, s.hearsItself():
		return false
	}
	return s.now()-time.Duration(since) >= min(reconnects, 2*s.cfg.PollFloor)
}

// hearsItself reports whether the session is subscribed to its own channel, and notes that it is: another loss counts from
// when it happens.
func (s *Session) hearsItself() bool {
	channel, since := inbox.Prefix+s.id, s.unheard.Load()
	if !s.redis.Hears(channel) {
		return false
	}
	if s.unheard.CompareAndSwap(since, 0) && !s.redis.Hears(channel) { // lost again, before that could be noted
		s.unheard.CompareAndSwap(0, since)
	}
	return true
}

// bookRound completes the attempt of a caller that polls: a TryLock does, and a Lock in a session that cannot subscribe.
// The attempt says when the caller will ask again, if it sleeps, and the network takes, as long as the last time. A release
// shortly before that time leaves the lock to the caller. The longer that has waited, the earlier releases do so.
func (a *acquisition) bookRound() {
	now, line := a.lock.s.now(), &a.op.Line
	line.Session, line.ComesIn = a.lock.s.id, a.attempts.trip+a.attempts.pause+time.Millisecond
	line.Window = min(2*time.Millisecond+(now-a.start)/5, waiting.MostWindow, line.ComesIn)
}

// nextPause returns for how long a caller that was refused once more sleeps. It runs code of the caller's: no
// mutex may be held.
func (a *acquisition) nextPause(b clock.Backoff) (d time.Duration, ok bool) {
	a.attempts.refused++
	a.attempts.trip = a.lock.s.now() - a.attempts.sent
	if d, ok = b.Next(a.attempts.refused); ok {
		a.attempts.pause = d
	}
	return d, ok
}

// mostWaiting is how many callers of a session are counted, at most: each time that it enters the line.
const mostWaiting = 10_000

// waitingToReport returns how many callers wait; 0 if Redis need not be told, since it assumes one. A number that was
// reported before is reported again: Redis may have lost the line meanwhile.
func (l *lock) waitingToReport() int {
	n := l.queue.Len(mostWaiting)
	if n <= 1 && l.contention.place.ReportedWaiting == 0 {
		return 0
	}
	l.contention.place.ReportedWaiting = n
	return n
}

// stands notes that a caller was refused and stands in the line, or that a release of its session has entered it.
func (a *acquisition) stands(g answer) {
	l, now := a.lock, a.lock.s.now()
	ct := l.needContention()
	p := &ct.place
	p.Stands(a.claim, now, g.Value >= 0)
	p.Clock.Read(g.sent, now, g.At, g.doubts)
	ct.answered = true
	ct.turns.Taken()
	l.attemptAfter(g.Value)
	if ct.leftUntil > 0 && ct.leftAt >= g.sent { // the session has left permits to others meanwhile: no message says when these come free
		ct.next.at = min(ct.next.at, max(ct.leftUntil, now))
	}
	if g.doubts != l.s.redis.Conn.Doubts.Load() { // a message may have been lost meanwhile
		ct.next.soon = true
	}
	if a.claim.except == slowTaker && p.First > 0 && int64(now) < l.s.slowUntil.Load() {
		ct.next.at = min(ct.next.at, now+waiting.SlowInterval)
	}
	if m := p.Message; m != nil && p.MessageTo == a.claim {
		p.Message, p.MessageTo = nil, nil
		l.hearClaim(a.claim, m)
		return
	}
	switch {
	case ct.listener == nil && l.s.redis.Mute:
		ct.next.soon = true
	case ct.listener == nil && p.First > 0:
		ct.next.at = min(ct.next.at, p.First+waiting.FirstPatience)
	case ct.listener != nil && (a.kind.Writes || a.kind.Shares) && p.First == 0 && !l.s.redis.Mute && !ct.everywhere:
		l.endSubscription() // the line informs it; the messages of releases, which are for others, would have it ask in vain
	}
}
