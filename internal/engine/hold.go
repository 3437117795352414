package engine

import (
	"context"
	"fmt"
	"time"

	"relock/internal/lockerr"
	"relock/internal/lockopt"
)

// Hold is one successful Lock; package rlock documents it. It is guarded by the mutex of the
// claim's lock, but for what never changes.
type Hold struct {
	section *section
	side    uint8
	done    bool          // unlocked
	ranOut  bool          // its fixed lease is over
	began   time.Duration // when its acquisition was sent, or when it was handed over
	*fixed                // nil: the watchdog renews it
}

// fixed is what a hold with a fixed lease has.
type fixed struct {
	until  time.Duration           // its end
	end    time.Duration           // until when it may be trusted
	cancel context.CancelCauseFunc // of its own context; nil if it has none
}

// fix sets the end of a fixed lease: d after a time.
func (h *Hold) fix(from, d time.Duration) {
	if h.fixed == nil {
		h.fixed = new(fixed)
	}
	h.until, h.end = from+d, from+trustIn(d)
}

// valid reports whether h is a hold at all: the nil and the zero Hold are not.
func (h *Hold) valid() bool { return h != nil && h.section != nil }

// Owner returns the owner as it stands in Redis.
func (h *Hold) Owner() string {
	if !h.valid() {
		return ""
	}
	return h.section.claim.ownerID()
}

// Token returns the fencing token of the section.
func (h *Hold) Token() int64 {
	if !h.valid() {
		return 0
	}
	return h.section.token
}

// N returns the number of permits.
func (h *Hold) N() int {
	if !h.valid() {
		return 0
	}
	return int(h.section.claim.n)
}

// Remaining returns for how long the hold can surely be trusted.
func (h *Hold) Remaining() time.Duration {
	if !h.valid() {
		return 0
	}
	x, c := h.section, h.section.claim
	c.lock.mu.Lock()
	defer c.lock.unlock()
	if h.done || h.ranOut || x.over() || c.state != held {
		return 0
	}
	end := min(c.trust, x.until)
	if h.fixed != nil {
		end = min(c.trust, h.end)
	}
	return max(0, end-c.lock.s.now())
}

// standing reports whether the section is open: invariant I2.
func (x *section) standing(now time.Duration) bool {
	return x.ended.Load() == 0 && x.claim.state == held && now < min(x.claim.trust, x.until)
}

// endedErr says why the section has ended.
func (x *section) endedErr() error {
	if ending(x.ended.Load()) == closed {
		return ErrClosed
	}
	return ErrLost
}

// standing returns why the hold does not hold, or nil. What the watchdog is late to see, after
// a pause of the process, is seen here.
func (h *Hold) standing(now time.Duration) error {
	x := h.section
	if h.done {
		return ErrNotHeld
	}
	if !x.over() && !x.standing(now) {
		x.claim.expire(now)
	}
	switch {
	case x.over():
		return x.endedErr()
	case h.ranOut || h.fixed != nil && h.end <= now:
		return ErrLost
	}
	return nil
}

// Extend gives a hold with a fixed lease a new end.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	if !h.valid() {
		return fmt.Errorf("extend: %w", ErrNotHeld)
	}
	var err error
	switch {
	case ctx == nil:
		err = lockerr.ErrNilContext
	case d < time.Millisecond || d > lockopt.Longest:
		err = fmt.Errorf("%w: Extend by %v; it must be at least 1ms and at most %v", ErrArgument, d, lockopt.Longest)
	case h.fixed == nil:
		err = fmt.Errorf("%w: Extend of a hold that the watchdog renews; it is for fixed leases", ErrArgument)
	case ctx.Err() != nil:
		err = lockerr.OfContext(ctx)
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
	end := h.end
	l.unlock()
	bounded, cancel := context.WithTimeout(ctx, end-s.now()) // without the mutex: it runs code of ctx
	defer cancel()
	l.mu.Lock()
	if !c.waitIdle(bounded) {
		return h.notExtended(ctx, errEarlier)
	}
	now := s.now()
	if err := h.standing(now); err != nil {
		l.unlock()
		return err
	}
	if c.prim.Kind().Shares && c.num != 0 && !c.bound { // the claim is renewed anyway
		h.fix(now, d)
		x.settleEnd()
		c.reschedule()
		l.unlock()
		return nil
	}
	op := h.extension(now, d)
	x.extra().interrupt = cancel
	l.unlock()

	r := c.extendTo(bounded, int(h.side), &op)
	if r.err != nil {
		r.err = h.notExtended(ctx, r.err)
	}

	l.mu.Lock()
	defer l.unlock()
	defer c.commandDone()
	c.more.sent(&op, &r)
	if !x.over() {
		x.more.interrupt = nil
	}
	c.expire(s.now()) // it may have ended meanwhile, with the watchdog late to see it
	switch {
	case r.err != nil:
		return r.err
	case x.over():
		return x.endedErr()
	case h.ranOut:
		return ErrLost
	case r.alive == 0:
		c.lose("it was gone when it was extended", true)
		return ErrLost
	}
	h.fix(r.sent, d)
	if x.auto == 0 {
		c.trust = 0 // it may have come closer
	}
	c.confirmed(r.sent, op.Lease, r.doubts)
	c.renewAfter(r.sent)
	x.settleEnd()
	c.reschedule()
	return nil
}

// notExtended is the error of an Extend that got no good answer, by err: that the hold has
// ended meanwhile counts before all else. The lock's mutex must not be held.
func (h *Hold) notExtended(ctx context.Context, err error) error {
	l := h.section.claim.lock
	l.mu.Lock()
	ended := h.standing(l.s.now())
	l.unlock()
	switch {
	case ended != nil:
		return ended
	case ctx.Err() != nil:
		return lockerr.CutOff(ctx, err)
	}
	return lockerr.Unavailable(err)
}

// extension returns the command that moves the end of the hold to d from now. Until the answer
// is here only what holds either way is trusted.
func (h *Hold) extension(now, d time.Duration) Op {
	x, c := h.section, h.section.claim
	op := c.prepareExtend(int(h.side), d, x.auto > 0)
	if !op.Away {
		if early := now + trustIn(d); early < h.end {
			h.end = early
			x.settleEnd()
			c.reschedule()
		}
	}
	for _, other := range x.more.fixed {
		if other != h && other.until > now+op.Lease {
			op.Lease = other.until - now
		}
	}
	return op
}

// ownContext gives a nested hold with a fixed lease a context of its own, since it may end
// before the section. No mutex may be held.
func (h *Hold) ownContext(ctx context.Context) context.Context {
	if h.fixed == nil {
		return ctx
	}
	own, cancel := context.WithCancelCause(ctx)
	l := h.section.claim.lock
	l.mu.Lock()
	h.cancel = cancel
	over := h.ranOut || h.section.over()
	l.unlock()
	if over {
		cancel(ErrLost)
	}
	return own
}

// endContext ends the hold's own context, if it has one. No mutex may be held.
func (h *Hold) endContext(cause error) {
	if h.fixed != nil && h.cancel != nil {
		h.cancel(cause)
	}
}
