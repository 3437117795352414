package engine

import (
	"relock/internal/idgen"
	"relock/internal/kind"
	"relock/internal/waiting"
	"relock/locktrace"
)

// The messages of scripts to a session whose entry is granted the lock, or called; package waiting has their format.

// hearLine handles a message of a script to an entry of the session. If the session does not know the entry, a
// granted lock is released at once, and a called entry is removed from the line. While the session closes it does
// neither: the release of each entry is under way, and Close waits for those alone.
func (s *Session) hearLine(payload string) bool {
	m, ok := waiting.Parse(payload, s.id)
	if !ok {
		return false
	}
	session, num, private := idgen.SplitOwner(m.Owner)
	private = private && session == s.id && !m.Named
	known := false
	for _, l := range s.locks.Find("", m.Key) {
		l.mu.Lock()
		var c *claim // that the entry is for
		if m.Named {
			if c = l.claimOf(m.Owner); c != nil && c.account.FirstID(c.kind) != m.ID { // of an earlier caller
				c = nil
			}
		} else if private {
			for c = l.claims; c != nil && c.num != num; c = c.next {
			}
		}
		if c != nil && !known && s.trace != nil {
			s.traceLine(&m, c.kind)
		}
		switch known = known || c != nil; {
		case c == nil || c.state != asking:
		case c.run != nil:
			l.hearRun(c, &m)
		default:
			l.hearClaim(c, &m)
		}
		l.unlockInBackground()
	}
	if known {
		return true
	}
	liner := s.liners[m.Sort()].Load()
	if liner != nil && s.trace != nil {
		s.traceLine(&m, (*liner).Kind())
	}
	lasts := private && s.standing.private.lasts(num, s.now()) // see noteStanding
	if liner != nil && !lasts && s.life.Closing.Err() == nil {
		s.cleanup.AddSpare((*liner).Dismiss(s.NamesOf(m.Key), m.Head, m.Owner, m.Granted), s.now()+s.want().Lease)
	}
	return true
}

// hearClaim handles a message to a claim that asks. While an attempt for the claim is under way, the message is kept
// until the answer: a grant in the answer counts by itself, and after a refusal Redis's time in both says which is newer.
//
// A called session has no hold in Redis. If it still has a claim that holds the lock, its front waits for the end of that
// claim: so Redis is asked about the claim at once, and not at the next renewal.
func (l *lock) hearClaim(c *claim, m *waiting.Message) {
	ct, front := l.needContention(), l.queue.First
	if l.holder != nil && !m.Granted && m.After == 0 {
		l.holder.askSoon(l.s.now())
	}
	switch {
	case front == nil || front.Of.claim != c:
		if m.Granted {
			c.end(nil) // its callers have left
		}
	case c.awaits == anAnswer:
		ct.place.Message, ct.place.MessageTo = m, c
	case m.Granted:
		l.grantedByMessage(c, m)
	default:
		ct.next.soon, ct.next.at = ct.next.soon || m.After == 0, min(ct.next.at, l.s.now()+m.After)
		l.wakeFront()
	}
}

// grantedByMessage handles the message that a script has granted the lock to the claim of the front. If the message cannot be
// trusted, or replicas are to acknowledge the grant, the front asks.
func (l *lock) grantedByMessage(c *claim, m *waiting.Message) {
	s, ct, a := l.s, l.contention, l.queue.First.Of
	g, ok := c.grantOf(m)
	if !ok || s.cfg.Replicas > 0 || l.state != lockOpen || a.waitErr != nil {
		l.askAtOnce()
		return
	}
	now := s.now()
	if now-g.sent > max(waiting.SlowTaker, 2*ct.place.Clock.Trip) {
		s.slowUntil.Store(int64(now + waiting.SlowFor))
	}
	if m.Token > 0 {
		c.needAccount().Exactly(m.Tokens)
	}
	if a.node.Next != nil {
		g.confirmAt = 0 // at once: another caller waits for the hand-over
	}
	x := a.admit(g)
	a.traced.Grant = locktrace.GrantLine
	a.deliver(x)
	if l.holder == nil { // other permits may come free meanwhile: the next front enters the line, whether it listens or not
		l.askAtOnce()
	}
}

// grantOf makes a grant of a message, if that can be trusted until a renewal is answered. The renewal is sent after a
// while, if the section is still open then, unless the caller of grantOf has it sent at once. Its answer is waited for a
// third of the time that is left, and takes two trips if Redis does not know the script: a session further away asks, and
// has a full lease by the answer.
func (c *claim) grantOf(m *waiting.Message) (g answer, ok bool) {
	l, s := c.lock, c.lock.s
	now, doubts := s.now(), s.redis.Conn.Doubts.Load()
	at, known := l.needContention().place.Clock.When(m.At, now, doubts)
	g = answer{Answer: kind.Answer{Status: granted, Value: 1, Token: m.Token}, sent: at, doubts: doubts,
		unconfirmed: m.Lease, confirmAt: now + min(waiting.ConfirmAfter, m.Lease/3), until: at + trustIn(min(m.Lease, c.safeLease))}
	return g, known && now < at+trustIn(m.Lease)/2 && g.until-now > 3*2*l.contention.place.Clock.Trip
}

// confirmSoon has a claim that was given to the session confirmed at once: another caller waits for the lock. Of
// several claims for permits, that is the one that was granted last.
func (l *lock) confirmSoon() {
	if l.contention == nil || l.contention.place.Unconfirmed == nil {
		return
	}
	c := l.contention.place.Unconfirmed
	if (c == l.holder || c.kind.Permits) && (c.except == unrenewed || c.renewAt != renewalUnderWay) {
		c.askSoon(l.s.now())
	}
}
