package engine

import (
	"time"

	"relock/internal/holds"
)

// Hold is one successful Lock; package rlock documents it. It is guarded by the mutex of the
// claim's lock, but for what never changes.
type Hold struct {
	section *section
	held    holds.Hold
}

// fix sets the end of a fixed lease: d after a time.
func (h *Hold) fix(from, d time.Duration) { h.held.Fix(from, d, trustIn(d)) }

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
	return h.section.token.Load()
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
	if h.held.Done || h.held.RanOut || x.ctx.HasEnded() || c.state != held {
		return 0
	}
	end := min(c.trust, x.holds.Until)
	if h.held.Fixed != nil {
		end = min(c.trust, h.held.Until)
	}
	return max(0, end-c.lock.s.now())
}

// check returns why the hold does not hold, or nil. What the watchdog is late to see, after
// a pause of the process, is seen here.
func (h *Hold) check(now time.Duration) error {
	x := h.section
	if h.held.Done {
		return ErrNotHeld
	}
	if !x.ctx.HasEnded() && !x.isOpen(now) {
		x.claim.expire(now)
	}
	switch {
	case x.ctx.HasEnded():
		return x.endedErr()
	case h.held.RanOut || h.held.Fixed != nil && h.held.Until <= now:
		return ErrLost
	}
	return nil
}
