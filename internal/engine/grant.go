package engine

import (
	"context"
	"fmt"
	"time"

	"relock/internal/kind"
	"relock/internal/script"
)

// grant is the answer to an attempt.
type grant struct {
	kind.Answer
	sent    time.Duration // when the attempt that was answered was sent
	doubts  uint32        // the session's count at that time
	trusted time.Duration // how much of its lease no other process cuts off
	asked   bool          // replicas were asked to acknowledge it, and did not
	// unconfirmed is for how long Redis keeps what a Queuer's message has granted.
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
	if r, ok := p.(Refuser); ok {
		return r.Never(g.Value)
	}
	return script.ErrShape
}

// errLate is a grant whose answer took longer than the lease that it grants.
var errLate = fmt.Errorf("%w: the reply came later than the lease it speaks of", ErrUnavailable)

// tryAcquire runs the acquire script once. An error means that the lock is not known to be
// held. Whether a grant came in time is for the caller to see: late.
func (s *Session) tryAcquire(ctx context.Context, v *target, op *Op, trusted time.Duration) (grant, error) {
	g := grant{sent: s.now(), doubts: s.redis.Conn.Doubts.Load(), trusted: trusted}
	err := g.Decode(s.redis.Run.Run(ctx, v.prim.Acquire(op)), v.kind, op)
	if err == nil && s.cfg.Replicas > 0 {
		err = s.acknowledged(ctx, &g, v.prim, op)
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
	if err == nil {
		err = s.late(g)
	}
	g.asked = err != nil
	return err
}

// late returns an error for a grant that can be trusted no longer.
func (s *Session) late(g *grant) error {
	if g.Status == granted && s.now() >= g.sent+trustIn(g.trusted) {
		return errLate
	}
	return nil
}
