package engine

import (
	"errors"
	"time"

	"relock/internal/api"
)

// A holder is who had a lock when a caller was refused, and when that lease was to end. The zero value is
// unknown.
type holder struct {
	owner string
	until time.Duration
}

// holderOf returns the holder that a refusal names, which has just arrived.
func holderOf(g *answer, now time.Duration) holder {
	ms := max(g.Value, 0)
	if g.Left > 0 {
		ms = g.Left
	}
	return holder{g.Owner, now + time.Duration(ms)*time.Millisecond}
}

// errNamesHolder reports whether the caller's error is to name the lock's holder: the caller asks once, or its wait is bounded.
func (a *acquisition) errNamesHolder() bool { return !a.wait || a.opts.Bounded || a.opts.Retry != nil }

// noteHolder finds out the lock's holder, before the caller leaves the queue. The lock's mutex must be held.
func (a *acquisition) noteHolder() {
	l := a.lock
	if !a.errNamesHolder() {
		return
	}
	if c := l.holder; c != nil && c.state == held {
		a.attempts.holder = holder{c.ownerID(), c.trust}
		return
	}
	if l.contention != nil && a.attempts.holder.owner == "" {
		a.attempts.holder = l.contention.holder
	}
}

// nameHolder adds the lock's holder to the error of a caller that asked once, or whose wait was bounded.
func (a *acquisition) nameHolder(err error) error {
	if !a.errNamesHolder() || !errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrDeadlock) {
		return err
	}
	h, left := a.attempts.holder, time.Duration(0)
	if h.owner != "" {
		left = max(0, h.until-a.lock.s.now())
	}
	return api.Taken(a.prim.Names().Name(), h.owner, left, err)
}
