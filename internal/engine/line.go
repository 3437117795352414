package engine

import (
	"strconv"
	"strings"
	"time"

	"relock/internal/backoff"
	"relock/internal/cleanup"
	"relock/internal/kind"
	"relock/internal/resend"
	"relock/internal/script"
	"relock/internal/waiting"
	"relock/locktrace"
)

// The line: of each lock that sessions wait for, Redis has a line of their entries. A session has one entry
// for a lock, for the claim of the caller in front of its queue: that caller's attempt enters it, and
// looks after it at each poll floor. A release gives the lock to the first entry, or calls it, and tells its
// session; package waiting and line.lua of package script have the formats.

// place is how the session stands in the line of a lock.
type place = waiting.Place[claim]

// want is what all entries of the session say.
func (s *Session) want() waiting.Want {
	return waiting.Want{Session: s.id, Lease: s.givenFor(), Life: waiting.Life(min(s.cfg.PollFloor, waiting.LongestLook))}
}

// givenFor is for how long Redis keeps a lock for a session that it was given to by another's release.
// Queues of fair locks are another thing: see Config.QueueLease.
func (s *Session) givenFor() time.Duration { return min(waiting.GrantLease, s.cfg.Lease) }

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
	w.Slow = c.stopped
	w.Named, w.Asks = c.num == 0, c.pinned // a lease of its own
	if c.kind.Fenced {
		w.Tokens = c.account.Asked()
	}
	return c.prim.(kind.Liner).Entry(w.Head())
}

// inLine completes the attempt of a front: it enters the line of its lock, or stands there. A session that cannot
// be told, and a TryLock, which does not wait, may book a round instead.
func (a *acquisition) inLine() {
	l, c := a.lock, a.claim
	if !a.op.Wait || l.s.redis.Inbox.Deaf() {
		if a.tries.pause > 0 {
			a.books()
		}
		return
	}
	a.op.Line.Head = l.s.plainHead
	if c.num == 0 || c.pinned || c.stopped || c.kind.Fenced {
		a.op.Line.Head = c.entryHead()
	}
	if b := l.lobby; b != nil {
		a.op.Line.Again = b.place.Claim == c || a.tries.MayHaveRun || a.tries.MayCome
		a.op.Line.Waiting = l.tellWaiting()
	}
	if l.lobby != nil || l.s.deserted.Load() > int64(l.s.now()) {
		a.op.Line.Listens = l.hears(a.prim)
	}
}

// hears reports whether a script counts the session among the listeners of the lock's channel.
func (l *lock) hears(p Primitive) bool {
	return l.lobby != nil && l.lobby.listener != nil || l.s.deserted.Load() > int64(l.s.now()) && l.s.redis.Hears(p.Channel())
}

// books completes the attempt of a caller that polls: it says when it comes again, if it sleeps for as long
// as the last time, so that a release of then can leave the lock to it. The longer it has waited, the longer
// before that.
func (a *acquisition) books() {
	now, line := a.lock.s.now(), &a.op.Line
	line.Books, line.ComesIn = a.lock.s.id, a.tries.pause+time.Millisecond
	line.Window = min(2*time.Millisecond+(now-a.start)/5, waiting.MostWindow, line.ComesIn)
}

// nextPause returns for how long a caller that was refused once more sleeps. It runs code of the caller's: no
// mutex may be held.
func (a *acquisition) nextPause(b backoff.Backoff) (d time.Duration, ok bool) {
	a.tries.refused++
	if d, ok = b.Next(a.tries.refused); ok {
		a.tries.pause = d
	}
	return d, ok
}

// mostWaiting is how many callers of a session are counted, at most: each time that it enters the line.
const mostWaiting = 10_000

// tellWaiting returns how many callers wait, if Redis is to be told: it takes that there is one. It counts them.
// Redis is told again what it was told before: it may have lost the line meanwhile.
func (l *lock) tellWaiting() int {
	n := l.queue.Len(mostWaiting)
	if n <= 1 && l.lobby.place.Said == 0 {
		return 0
	}
	l.lobby.place.Said = n
	return n
}

// stands takes in that a caller was refused and stands in the line, or that its session has entered it anew.
func (a *acquisition) stands(g grant) {
	l, now := a.lock, a.lock.s.now()
	b := l.needLobby()
	p := &b.place
	p.Stands(a.claim, now, g.Value >= 0)
	p.Clock.Read(g.sent, g.Token, g.doubts)
	p.Trip = now - g.sent
	b.answered = true
	b.turns.Taken()
	l.lookAfter(g.Value)
	if g.doubts != l.s.redis.Conn.Doubts.Load() { // a message may have been lost meanwhile
		b.look.Soon = true
	}
	if a.claim.stopped && p.First > 0 && int64(now) < l.s.slowUntil.Load() {
		b.look.At = min(b.look.At, now+waiting.SlowLook)
	}
	if m := p.Told; m != nil && p.To == a.claim {
		p.Told, p.To = nil, nil
		l.hear(a.claim, m)
		return
	}
	if b.listener == nil {
		switch {
		case l.s.redis.Mute:
			b.look.Soon = true
		case p.First > 0:
			b.look.At = min(b.look.At, p.First+waiting.FirstPatience)
		}
	}
}

// listensFirst reports whether the front listens to the lock's channel before it asks: others than the
// sessions of the line may have the lock, and these only publish there. So does this session if it may not
// tell others anything, and those of the same user probably do.
func (l *lock) listensFirst() bool {
	b := l.lobby
	first := b.place.First > 0 && l.s.now() >= b.place.First+waiting.FirstPatience
	return b.listener == nil && (first || l.s.redis.Mute && b.place.Claim != nil)
}

// hearLine takes a message of a script to an entry of the session. What was given to one that the session
// does not know is given back at once, and one that is called and not known leaves the line; not while
// the session closes, for then the release of each entry is on its way, and Close waits for those alone.
func (s *Session) hearLine(payload string) bool {
	m, ok := waiting.Parse(payload, s.id)
	if !ok {
		return false
	}
	if s.trace != nil {
		s.traceLine(&m)
	}
	known := false
	for _, l := range s.locks.Find("", m.Key) {
		l.mu.Lock()
		known = l.told(&m) || known
		l.unlockBehind()
	}
	if known || s.life.Closing.Err() != nil || !m.Named() && s.standsStill(m.Owner) {
		return true
	}
	if p := s.liner.Load(); p != nil {
		s.cleanup.Add(cleanup.Job{Name: m.Key, Cmds: []script.Command{(*p).Dismiss(s.NamesOf(m.Key), m.Head, m.Owner, m.Granted)}, Until: s.now() + s.givenFor()})
	}
	return true
}

// stoodStill notes that a claim which is over may stand in Redis, as one that was abandoned: a message for its
// entry that comes late is no reason to end it.
func (c *claim) stoodStill() {
	s, now := c.lock.s, c.lock.s.now()
	s.standing.Range(func(num, until any) bool {
		if until.(time.Duration) < now {
			s.standing.Delete(num)
		}
		return true
	})
	s.standing.Store(c.num, c.latestEnd(now))
}

// standsStill reports whether an owner is one of those.
func (s *Session) standsStill(owner string) bool {
	number, ok := strings.CutPrefix(owner, s.id+":")
	num, err := strconv.ParseUint(number, 10, 64)
	until, stands := s.standing.Load(num)
	return ok && err == nil && stands && s.now() < until.(time.Duration)
}

// admitMore has a release sent again in the background as long as the script has not looked at all entries: so
// many sessions that stood in front have died.
func (s *Session) admitMore(cmd script.Command) {
	s.life.Background.Go(func() {
		for range mostAgain {
			r, err := s.redis.Sender.Release(s.releaseLimit.At(s.now()), resend.ReleaseCommand{Command: cmd})
			if err != nil || r.Line.Position >= 0 {
				return
			}
		}
	})
}

// mostAgain bounds that: each time 16 entries are looked at.
const mostAgain = 1000

// told takes a message to an entry, and reports whether the session knows that.
func (l *lock) told(m *waiting.Message) bool {
	c := l.claimOfEntry(m)
	switch {
	case c == nil:
		return false
	case c.state != asking:
	case c.run != nil:
		l.hearRun(c, m)
	default:
		l.hear(c, m)
	}
	return true
}

// hear takes in what a script says to a claim that asks. While an attempt of that is on its way, the answer
// decides: a grant counts by itself, and a refusal is older than the message.
func (l *lock) hear(c *claim, m *waiting.Message) {
	b, a := l.needLobby(), l.queue.Front()
	switch {
	case a == nil || a.claim != c:
		if m.Granted {
			c.end(nil) // its callers have gone
		}
	case c.flying:
		b.place.Told, b.place.To = m, c
	case m.Granted:
		l.given(c, m)
	default:
		b.look.Soon, b.look.At = b.look.Soon || m.After == 0, min(b.look.At, l.s.now()+m.After)
		l.callUp()
	}
}

// claimOfEntry returns the claim that an entry is for; nil if there is none.
func (l *lock) claimOfEntry(m *waiting.Message) *claim {
	if m.Named() {
		return l.claimOf(m.Owner)
	}
	number, ok := strings.CutPrefix(m.Owner, l.s.id+":")
	num, err := strconv.ParseUint(number, 10, 64)
	for c := l.claims; ok && err == nil && c != nil; c = c.next {
		if c.num == num {
			return c
		}
	}
	return nil
}

// given takes in that a script has given the lock to the claim of the front. What cannot be trusted is asked
// for, and so is what replicas are to acknowledge.
func (l *lock) given(c *claim, m *waiting.Message) {
	s, b, a := l.s, l.lobby, l.queue.Front()
	g, ok := c.grantOf(m)
	if !ok || s.cfg.Replicas > 0 || l.state != lockOpen || a.hopeless != nil {
		l.nudge()
		return
	}
	now := s.now()
	if now-g.sent > max(waiting.SlowTaker, 2*b.place.Trip) {
		s.slowUntil.Store(int64(now + waiting.SlowFor))
	}
	if m.Token > 0 {
		c.needAccount().Exactly(m.Tokens)
	}
	if a.node.Next() == nil {
		g.confirmLater(now)
	}
	x := a.admit(g)
	a.traced.Grant = locktrace.GrantLine
	b.place.Given = c
	a.claim = nil
	l.dequeue(a)
	a.deliver(x)
	l.callUp()
}

// grantOf makes a grant of a message, if that can be trusted for a while.
func (c *claim) grantOf(m *waiting.Message) (g grant, ok bool) {
	l, s := c.lock, c.lock.s
	now, doubts := s.now(), s.redis.Conn.Doubts.Load()
	at, known := l.needLobby().place.Clock.When(m.At, now, doubts)
	g = grant{Answer: kind.Answer{Status: granted, Value: 1, Token: m.Token}, sent: at, doubts: doubts,
		unconfirmed: m.Lease, until: at + trustIn(min(m.Lease, c.safeLease))}
	return g, known && now < at+trustIn(m.Lease)/2
}

// confirmLater has what a message has granted confirmed when the section has lasted for a while: nobody else of
// the session waits for it. Else that is done at once.
func (g *grant) confirmLater(now time.Duration) {
	g.confirmAt = now + min(waiting.ConfirmAfter, g.unconfirmed/3)
}

// confirmSoon has a claim that was given to the session confirmed at once: another caller waits for it.
func (l *lock) confirmSoon() {
	if b := l.lobby; b != nil && b.place.Given != nil && b.place.Given == l.holder && (l.holder.stopped || l.holder.renewAt != awaited) {
		l.holder.askSoon(l.s.now())
	}
}

// pausesFor reports whether a claim without a section waits for a renewal: the lock was given to it, and too
// little of the trust is left for the next caller until that is confirmed.
func (l *lock) pausesFor(c *claim, now time.Duration) bool {
	b := l.lobby
	if b == nil || b.place.Given != c || c.state != held || c.pinned || now >= c.trust || l.s.cfg.HandOverLimit < 0 {
		return false
	}
	c.pause(now)
	return true
}

// pause keeps a claim without a section until a renewal has confirmed it.
func (c *claim) pause(now time.Duration) {
	c.lock.needLobby().place.Pause = c
	if c.stopped || c.renewAt != awaited {
		c.stopped, c.renewAt = false, now
	}
	c.reschedule()
}

// paused reports whether the claim waits for that.
func (c *claim) paused() bool {
	b := c.lock.lobby
	return b != nil && b.place.Pause == c
}

// resume goes on with a claim that a renewal has confirmed.
func (c *claim) resume(now time.Duration) {
	if c.state != held || !c.paused() {
		return
	}
	l := c.lock
	l.lobby.place.Pause = nil
	switch {
	case l.queue.First == nil || !l.handOver(c, now):
		c.end(nil)
		l.nudge()
	case l.s.trace != nil && !c.paused():
		l.s.notify(c.traceHandedOver)
	}
}

// enterAnew prepares the front of the queue to enter the line by the release of a claim; nil if it does not:
// no other session waits as far as is known, or the front asks by itself.
func (l *lock) enterAnew(c *claim, op *Op) *claim {
	if c.run != nil {
		return l.requeueBy(c.run, op)
	}
	a := l.queue.Front()
	if !c.kind.HandsOver || !c.kind.Lines || l.state != lockOpen || a.asking || a.claim != nil || a.hopeless != nil ||
		l.s.redis.Inbox.Deaf() || l.needLobby().turns.Alone() {
		return nil
	}
	a.prepare()
	a.op.Line.Head, a.op.Line.Waiting = a.claim.entryHead(), l.tellWaiting()
	a.asking, a.claim.flying, a.tries.MayHaveRun = true, true, true
	op.Line.Enter, op.Line.Waiting = a.op.Line.Head+a.claim.ownerID(), a.op.Line.Waiting
	return a.claim
}

// enteredAnew takes in what became of that.
func (l *lock) enteredAnew(c *claim, r *resend.Released, sent time.Duration, doubts uint32, err error) {
	if c.run != nil {
		l.requeued(c, r, sent, doubts, err)
		return
	}
	c.flying = false
	if c.state != asking { // it was ended meanwhile: perhaps before it has entered
		if err != nil || r.Lost || r.Resent || r.Line.Position > 0 {
			c.dismissEntry()
		}
		return
	}
	if c.account != nil {
		c.account.CallUp()
	}
	a := l.queue.Front()
	switch {
	case l.state != lockOpen:
		c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		return
	case a == nil || a.claim != c:
		c.end(nil)
		return
	}
	a.asking = false
	b := l.needLobby()
	if err != nil || r.Lost || r.Resent || r.Line.Others && r.Line.Position <= 0 {
		b.look.Soon = true // it may stand there
		a.wake.Up()
		return
	}
	a.tries.MayHaveRun = false
	if r.Line.Position > 0 {
		g := grant{sent: sent, doubts: doubts}
		g.Value, g.Token = -1, r.Line.At
		a.stands(g)
	}
}

// dismissEntry takes out of the line, in the background, what a claim that is over may have there.
func (c *claim) dismissEntry() {
	s := c.lock.s
	cmd := c.prim.(kind.Liner).Dismiss(*c.prim.Names(), c.entryHead(), c.ownerID(), c.num != 0)
	s.cleanup.Add(cleanup.Job{Name: c.prim.Names().Name(), Cmds: []script.Command{cmd}, Until: s.now() + s.cfg.ReleaseTimeout})
}

// bequeath gives the claim of a front that leaves, and its place in the line, to the next caller, if that
// wants the same.
func (a *acquisition) bequeath(next *acquisition) {
	c, l := a.claim, a.lock
	if c == nil || c.state != asking || l.lobby == nil || next.claim != nil || next.asking || next.hopeless != nil ||
		a.kind != next.kind || a.named != "" || next.named != "" || a.opts.Lease > 0 || next.opts.Lease > 0 {
		return
	}
	if !c.flying && (l.lobby.place.Claim != c || a.tries.MayHaveRun || a.tries.MayCome) {
		return
	}
	if head := l.s.plainHead; c.prim.(kind.Liner).Entry(head) != next.prim.(kind.Liner).Entry(head) {
		return // its tokens have an end, and those of the claim have none, or the other way round
	}
	next.claim, next.op, next.asking = c, a.op, c.flying
	next.tries.MayHaveRun = c.flying
	a.claim, a.asking, a.tries.MayHaveRun = nil, false, false
}
