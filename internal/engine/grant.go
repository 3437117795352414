package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/lockerr"
	"relock/internal/script"
)

// grant is the decoded reply of an acquire script.
type grant struct {
	status   int64
	value    int64 // holds, or milliseconds to wait (kinds with permits: those, if sized)
	token    int64
	free     int64         // permits that are left for others
	limit    int64         // the most that one request may be for; below 0: anything
	sized    bool          // free and limit were told, and value is known
	sent     time.Duration // when the attempt that was answered was sent
	doubts   uint32        // the session's count at that time
	position int64         // of a Queuer's entry
	asked    bool          // replicas were asked to acknowledge it, and did not
	// unconfirmed is for how long Redis keeps what a Queuer's message has granted.
	unconfirmed time.Duration
}

// The statuses of a grant, as the scripts return them.
const (
	granted = 1
	refused = 0
	notHeld = -1
	forGood = -2
)

// never returns the error of a grant that was refused for good.
func (g grant) never(p Primitive) error {
	if r, ok := p.(Refuser); ok {
		return r.Never(g.value)
	}
	return script.ErrShape
}

// errLate is a grant whose answer took longer than the lease that it grants.
var errLate = fmt.Errorf("%w: the reply came later than the lease it speaks of", ErrUnavailable)

// tryAcquire runs the acquire script once. An error means that the lock is not known to be
// held. Whether a grant came in time is for the caller to see: late.
func (s *Session) tryAcquire(ctx context.Context, v *variant, op *Op, trusted time.Duration) (grant, error) {
	g := grant{sent: s.now(), doubts: s.redis.Conn.Doubts.Load()}
	err := g.decode(s.redis.Run.Run(ctx, v.prim.Acquire(op)), v.kind, op)
	if err == nil && s.cfg.Replicas > 0 {
		err = s.acknowledged(ctx, &g, v.prim, op, trusted)
	}
	return g, err
}

// decode takes in the answer to an attempt, see tryAcquire.
func (g *grant) decode(r rueidis.RedisResult, k *Kind, op *Op) error {
	var buf [6]int64
	reply, err := script.Numbers(buf[:0], r)
	switch {
	case err != nil && script.IsContext(err):
		return err // how long Redis was waited for, the caller knows
	case err != nil:
		return lockerr.Unavailable(err)
	case len(reply) == 1 && k.Permits:
		switch free := reply[0]; {
		case free < 0:
			reply = append(reply[:0], granted, -free, 0, 1, 0, -1)
		case op.Next:
			reply = append(reply[:0], granted, op.Lease.Milliseconds()+1, 0, 1, free, -1)
		default:
			reply = append(reply[:0], granted, -1, 0, 1) // a caller that has come since asks for itself
		}
	case len(reply) == 1 && reply[0] == granted:
		reply = append(reply, 1, 0, 1)
	case len(reply) != 4 && len(reply) != 6:
		return fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
	}
	if g.sized = len(reply) == 6; g.sized {
		g.free, g.limit = reply[4], reply[5]
	}
	g.status, g.value, g.token, g.position = reply[0], reply[1], reply[2], reply[3]
	return nil
}

// late returns an error for a grant that can be trusted no longer, or of a lease of which only so
// much can.
func (s *Session) late(g grant, trusted time.Duration) error {
	if g.status == granted && s.now() >= g.sent+trustIn(trusted) {
		return errLate
	}
	return nil
}
