package engine

import (
	"context"
	"fmt"
	"time"

	"relock/internal/api"
	"relock/internal/idgen"
	"relock/internal/redis"
	"relock/internal/script"
)

// Extend gives a hold with a fixed lease a new end.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	if !h.valid() {
		return fmt.Errorf("extend: %w", ErrNotHeld)
	}
	var err error
	switch {
	case ctx == nil:
		err = api.ErrNilContext
	case d < time.Millisecond || d > api.Longest:
		err = fmt.Errorf("%w: Extend by %v; it must be at least 1ms and at most %v", ErrArgument, d, api.Longest)
	case h.held.Fixed == nil:
		err = fmt.Errorf("%w: Extend of a hold that the watchdog renews; it is for fixed leases", ErrArgument)
	case ctx.Err() != nil:
		err = api.OfContext(ctx)
	default:
		err = h.extend(ctx, d)
	}
	if err != nil {
		return opError("extend", h.section.claim.prim, err)
	}
	return nil
}

func (h *Hold) extend(ctx context.Context, d time.Duration) error {
	x, c := h.section, h.section.claim
	l, s := c.lock, c.lock.s
	l.mu.Lock()
	end := h.held.Until
	l.unlock()
	own, release := x.contexts(ctx).Bound(ctx) // without the mutex: it runs code of ctx
	defer release()
	bounded, cancel := context.WithTimeout(own, end-s.now())
	defer cancel()
	l.mu.Lock()
	if !c.awaitAnswer(bounded, false) {
		l.unlock()
		return h.notExtended(ctx, errEarlier)
	}
	now := s.now()
	if err := h.check(now); err != nil {
		l.unlock()
		return err
	}
	if c.countsHere() { // the claim is renewed anyway
		h.fix(now, d)
		x.holds.Reset()
		c.reschedule()
		l.unlock()
		return nil
	}
	op := h.extension(now, d)
	l.unlock()

	r := s.redis.Replicas.Extend(bounded, &s.redis.Sender, c.account.Sides(c.prim)[h.held.Side].(Leased), &op)
	if r.Err != nil {
		r.Err = h.notExtended(ctx, r.Err)
	}
	return h.extended(d, &op, &r)
}

// extended handles the outcome of an extension of the hold by d.
func (h *Hold) extended(d time.Duration, op *Op, r *redis.Extended) error {
	x, c := h.section, h.section.claim
	l, s := c.lock, c.lock.s
	l.mu.Lock()
	defer l.unlock()
	defer c.releaseUnsent(x)
	defer c.answered()
	c.account.Extended(op, r)
	c.expire(s.now()) // it may have ended meanwhile, with the watchdog late to see it
	switch {
	case r.Err != nil:
		return r.Err
	case x.ctx.HasEnded() && h.held.Done: // unlocked meanwhile
		return ErrNotHeld
	case x.ctx.HasEnded():
		return x.endedErr()
	case h.held.RanOut:
		return ErrLost
	case !r.Alive:
		c.lose("it was gone when it was extended", true)
		return ErrLost
	}
	h.fix(r.Sent, d)
	c.confirmed(r.Sent, op.Lease, r.Doubts)
	x.holds.Reset()
	c.renewAfter(r.Sent)
	return nil
}

// notExtended is the error of an Extend that got no good answer, by err: that the hold has
// ended meanwhile counts before all else. The lock's mutex must not be held.
func (h *Hold) notExtended(ctx context.Context, err error) error {
	l := h.section.claim.lock
	l.mu.Lock()
	ended := h.check(l.s.now())
	l.unlock()
	switch {
	case ended != nil:
		return ended
	case ctx.Err() != nil:
		return script.CutOff(ctx, err)
	}
	return script.AsUnavailable(err)
}

// extension returns the command that moves the end of the hold to d from now. Until the answer
// is here only what holds either way is trusted.
func (h *Hold) extension(now, d time.Duration) Op {
	x, c := h.section, h.section.claim
	op := c.prepareExtend(int(h.held.Side), d, x.holds.Renewed() > 0)
	if !op.Away {
		if early := now + trustIn(d); early < h.held.Until {
			h.held.Until = early
			x.holds.Reset()
			c.reschedule()
		}
	}
	_, ends := x.holds.LastFixed(&h.held)
	op.Lease = max(op.Lease, ends-now, c.account.Left-now, c.account.AtLeast-now)
	if !op.Away {
		c.cut(now, op.Lease)
	}
	return op
}

// prepareExtend notes in the account that an extension of one side is about to be sent, and
// returns it. The lock's mutex must be held.
func (c *claim) prepareExtend(side int, d time.Duration, away bool) Op {
	op := c.op()
	op.ID, op.Lease, op.Away = idgen.Request(), d, away
	c.needAccount().Extension(c.kind, side, &op)
	return op
}

// voidLate has Redis ignore what was given up and may arrive late, before a nested Lock has the
// claim trusted for longer. The lock's mutex must be held; it is released meanwhile and held
// again at the end.
func (a *acquisition) voidLate(c *claim) error {
	if !c.account.MayShorten() {
		return nil
	}
	side := 0
	if c.account.Counted(c.kind, side) == 0 {
		side = 1
	}
	op := c.prepareExtend(side, time.Millisecond, true)
	a.lock.unlock()
	a.undo = (*acquisition).quitVoiding
	ctx, cancel := a.bounded(a.ctx, a.queued)
	r := a.lock.s.redis.Sender.Extend(ctx, c.account.Sides(c.prim)[side].(Leased), &op)
	if r.Err != nil && ctx.Err() != nil {
		r.Err = a.ended()
	}
	cancel()
	a.undo = nil
	a.lock.mu.Lock()
	r.Late = false // it can only lengthen the lease, so it does no harm late
	c.account.Extended(&op, &r)
	c.answered()
	return r.Err
}
