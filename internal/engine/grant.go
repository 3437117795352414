package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"relock/internal/kind"
	"relock/internal/lockerr"
	"relock/internal/queue"
	"relock/internal/script"
)

// grant is the answer to an attempt.
type grant struct {
	kind.Answer
	sent           time.Duration // when the attempt that was answered was sent
	doubts         uint32        // the session's count at that time
	until          time.Duration // until when what the attempt asks for could be trusted
	unacknowledged bool          // replicas were asked to acknowledge it, and did not
	// unconfirmed is for how long Redis keeps what another's release has granted.
	unconfirmed time.Duration
}

// The statuses of a grant.
const (
	granted = kind.Granted
	refused = kind.Refused
	notHeld = kind.NotHeld
	forGood = kind.ForGood
)

// never returns the error of a grant that was refused for good.
func (g grant) never(p Primitive) error {
	if r, ok := p.(kind.Refuser); ok {
		return r.Never(g.Value)
	}
	return script.ErrShape
}

// errLate is why a grant counts for nothing: the answer, or the hooks that were told of it, took longer
// than the lease that it grants.
var errLate = fmt.Errorf("%w: the reply came later than the lease it speaks of", ErrUnavailable)

// attempt runs the acquire script with a.op once, for a claim. An error means that the lock is not
// known to be held. It runs the hooks: no mutex may be held.
func (a *acquisition) attempt(ctx context.Context, c *claim) (grant, error) {
	s := c.lock.s
	a.traced.Attempts++
	g := grant{sent: s.now(), doubts: s.redis.Conn.Doubts.Load()}
	g.until = g.sent + trustIn(min(a.lease, a.safeLease))
	err := g.Decode(s.redis.Run.Run(ctx, a.prim.Acquire(&a.op)), a.kind, &a.op)
	if err == nil && s.cfg.Replicas > 0 {
		err = s.acknowledged(ctx, &g, a.prim, &a.op)
	}
	if err == nil && g.Status == granted && a.ctx.Err() != nil {
		// The race of the end against the grant is decided for the end.
		err = lockerr.NotAcquired(lockerr.OfContext(a.ctx), nil)
	}
	if s.trace != nil {
		c.traceAttempt(g, err)
	}
	if err == nil && g.Status == granted && s.now() >= g.until {
		err = errLate
	}
	return g, err
}

// acknowledged waits until Config.Replicas replicas have acknowledged what was granted, if
// anything was; see [replicas.Asker.Granted].
func (s *Session) acknowledged(ctx context.Context, g *grant, p Primitive, op *Op) error {
	leased, ok := p.(Leased)
	if !ok || g.Status != granted { // what is not leased has no holder
		return nil
	}
	err := s.redis.Replicas.Granted(ctx, leased, op)
	g.unacknowledged = err != nil
	return err
}

// admit makes a section of a grant.
func (a *acquisition) admit(g grant) *section {
	l, c, s, k := a.lock, a.claim, a.lock.s, a.kind
	now := s.now()
	c.stopped = false
	c.state, c.trust, c.doubts = held, g.until, g.doubts
	if c.safeLease != never {
		c.expose(g.sent + cmp.Or(g.unconfirmed, a.lease))
	}
	if !k.Permits && (l.claims != c || c.next != nil) {
		l.belie(c)
	}
	if k.Exclusive {
		l.holder = c
	}
	if k.Exclusive || k.Permits {
		c.passUntil = now + queue.Slice
		if l.lobby != nil {
			l.lobby.place.Over(c)
			l.beginSlice(c, now)
		}
	}
	x := c.open(a, g.sent)
	if k.Fenced || g.Token > 0 {
		c.needAccount().Reserved(g.Token)
		x.token.Store(c.draw())
	}
	if g.unconfirmed > 0 || g.doubts != s.redis.Conn.Doubts.Load() {
		c.renewAt = g.sent // Redis is asked at once
	}
	c.renewAfter(g.sent)
	if m := c.account; m != nil {
		m.Registered = false
		m.Keep(&x.first.held, a.op.ID)
		m.Answered()
	}
	if k.Shares {
		l.shareFrom(c, g.sent)
	}
	return x
}
