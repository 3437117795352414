package engine

import (
	"cmp"
	"time"

	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
)

// An answer is what Redis replied to an attempt: granted, refused, not held, or refused for good.
type answer struct {
	kind.Answer
	sent           time.Duration // when the attempt that was answered was sent
	doubts         uint32        // the session's count of doubts at that time
	until          time.Duration // until when what the attempt asks for could be trusted
	unacknowledged bool          // replicas were asked to acknowledge it, and did not
	parted         bool          // the attempt did not name the line, in which the claim may stand: see behind.go
	// unconfirmed is for how long Redis keeps what another's release has granted, and confirmAt when that is to be
	// confirmed by a renewal.
	unconfirmed, confirmAt time.Duration
}

// The statuses of an answer.
const (
	granted = kind.Granted
	refused = kind.Refused
	notHeld = kind.NotHeld
	forGood = kind.ForGood
)

// never returns the error of an attempt that was refused for good.
func (g answer) never(p Primitive) error {
	if r, ok := p.(kind.Refuser); ok {
		return r.Never(g.Value)
	}
	return script.ErrShape
}

// admit makes a section of a grant.
func (a *acquisition) admit(g answer) *section {
	l, c, s, k := a.lock, a.claim, a.lock.s, a.kind
	now := s.now()
	c.except = ordinary
	c.become(held)
	c.trust, c.doubts = g.until, g.doubts
	if c.safeLease != never {
		c.expose(g.sent + cmp.Or(g.unconfirmed, a.lease))
	}
	if !k.Permits && (l.claims != c || c.next != nil) {
		l.loseOthers(c)
	}
	if k.Exclusive {
		l.holder = c
	}
	if c.keep > 0 && (g.unconfirmed > 0 || l.contention != nil && l.contention.place.Claim == c) {
		// It has stood in the line, and the sessions behind it have not asked for the lock back.
		c.keeper(now).wanted = true
	}
	if l.contention != nil { // callers wait, or waited
		l.contention.place.Over(c)
	}
	if k.Exclusive || k.Permits {
		c.passUntil = now + waiting.Slice
		if ct := l.contention; ct != nil {
			c.passUntil = ct.turns.Begin(now)
			if k.Exclusive && s.cfg.Polling == nil {
				ct.next = next{at: now + s.cfg.PollFloor}
			} else if k.Exclusive {
				ct.next.soon = false
			}
		}
	}
	if g.parted {
		p := &l.needContention().place
		if p.Behind == nil {
			p.Behind = map[*claim]string{}
		}
		p.Behind[c] = a.op.Line.Head // a claim that is in may want another one
	}
	x := c.open(a, g.sent)
	if k.Fenced {
		c.needAccount().Reserved(g.Token)
		x.token.Store(c.account.Draw())
	}
	if g.unconfirmed > 0 {
		c.renewAt, l.contention.place.Unconfirmed = g.confirmAt, c
	}
	if g.doubts != s.redis.Conn.Doubts.Load() {
		c.renewAt = g.sent // Redis is asked at once
	}
	c.renewAfter(g.sent)
	if m := c.account; m != nil {
		m.Keep(&x.first.held, a.op.ID)
		m.Answered()
	}
	if k.Shares {
		l.shareFrom(c, g.sent)
	}
	return x
}
