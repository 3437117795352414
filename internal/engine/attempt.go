package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/script"
)

// An attempt is one run of an acquire script for a claim, and its answer.
type attempt struct {
	c *claim
	*target
	op        *Op
	piggyback []*asyncRelease // that are sent in front of it
	caller    context.Context // a grant counts for nothing once it has ended; nil: for a run, which goes on without its caller
	answer
	err error // if there is one, the lock is not known to be held
}

// send sends an attempt, and decodes the answer. It runs the hooks: no mutex may be held.
func (s *Session) send(ctx context.Context, e *attempt) {
	e.sent, e.doubts = s.now(), s.redis.Conn.Doubts.Load()
	e.until = e.sent + trustIn(min(e.op.Lease, e.c.safeLease))
	var answer rueidis.RedisResult
	cmd := e.prim.Acquire(e.op)
	var parted *atomic.Bool
	if cmd.Fewer != nil && e.op.Line.Again {
		parted = notePart(&cmd)
	}
	if e.piggyback == nil {
		answer = s.redis.Run.Run(ctx, cmd)
	} else {
		answer = s.sendPiggyback(ctx, e.piggyback, cmd)
	}
	e.parted = parted != nil && parted.Load()
	e.err = e.Decode(answer, e.kind, e.op)
	if e.err == nil && s.cfg.Replicas > 0 {
		e.err = s.acknowledged(ctx, &e.answer, e.prim, e.op)
	}
	if s.trace != nil {
		s.trace.Attempt(e.c.about(), e.err == nil && e.Status == granted, e.err)
	}
	if e.err == nil && e.Status == granted && s.now() >= e.until {
		e.err = errLate
	}
	if e.err == nil && e.Status == granted && e.caller != nil && e.caller.Err() != nil {
		// The race of the end against the grant is decided for the end.
		e.err = api.NotAcquired(api.OfContext(e.caller), nil)
	}
}

// errLate is why a grant counts for nothing: the answer, or a hook that it was reported to, took longer
// than the lease that it grants.
var errLate = fmt.Errorf("%w: the reply came later than the lease it speaks of", ErrUnavailable)

// acknowledged waits until Config.Replicas replicas have acknowledged what was granted, if
// anything was; see [redis.Asker.Granted].
func (s *Session) acknowledged(ctx context.Context, g *answer, p Primitive, op *Op) error {
	leased, ok := p.(Leased)
	if !ok || g.Status != granted { // what is not leased has no holder
		return nil
	}
	err := s.redis.Replicas.Granted(ctx, leased, op)
	g.unacknowledged = err != nil
	return err
}

// unknown reports whether Redis may have run the attempt, or may run it yet.
func (e *attempt) unknown() bool {
	return e.err != nil && (script.Classify(e.err) == script.Unknown || script.Midway(e.err))
}

// takeBack gives back, in the background, what the attempt has taken or may take yet for a claim that was ended meanwhile.
func (e *attempt) takeBack() {
	if e.unknown() || e.err == nil && (e.Status == granted || e.Position > 0) {
		e.c.dismiss()
	}
}

// pauseAfter is for how long no further attempt is made after so many in a row had no answer, at most.
func (s *Session) pauseAfter() time.Duration { return min(s.cfg.PollFloor, time.Second) }
