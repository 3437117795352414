package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"relock/locktrace"
)

// A holdTrace is one hold as the hooks see it. While the hold stands it is in nesting.traces of
// its section; what takes it out of there, under the lock's mutex, decides how the hold ends.
// There is none without a Trace. Its mutex is the last in order; no hook runs under it.
type holdTrace struct {
	s *Session

	mu    sync.Mutex
	ctx   context.Context // of HoldStart; nil until that has returned
	about locktrace.HoldStart
	began time.Duration
	held  time.Duration
	why   locktrace.HoldReason // "" while the hold stands
}

// trace has the hooks, of which there are some, follow a hold of the section. The lock's mutex
// must be held.
func (x *section) trace(h *Hold, a *acquisition) {
	s := x.claim.lock.s
	m := x.extra()
	if m.traces == nil {
		m.traces = map[*Hold]*holdTrace{}
	}
	a.traced.hold = &holdTrace{s: s}
	m.traces[h] = a.traced.hold
}

// endTrace notes that a hold has ended otherwise than by an Unlock. The lock's mutex must be
// held.
func (x *section) endTrace(h *Hold, why locktrace.HoldReason) {
	if x.more == nil || x.more.traces[h] == nil {
		return
	}
	d, s := x.more.traces[h], x.claim.lock.s
	delete(x.more.traces, h)
	if d.end(why, s.now()) {
		s.notifySurely(d.tell)
	}
}

// endTraces does so for all holds of a section that ends.
func (x *section) endTraces(why locktrace.HoldReason) {
	if x.more == nil {
		return
	}
	for h := range x.more.traces {
		x.endTrace(h, why)
	}
}

// traced returns what the hooks follow the hold by, and the time: the hold is about to be
// unlocked. It is nil without a Trace, or when the hold has ended. No mutex may be held.
func (h *Hold) traced() (d *holdTrace, now time.Duration) {
	s := h.section.claim.lock.s
	if s.trace == nil {
		return nil, 0
	}
	l := h.section.claim.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.section.more.traces[h], s.now()
}

// start tells that the hold begins, and that it has ended if it has meanwhile.
func (d *holdTrace) start(ctx context.Context, e locktrace.HoldStart) {
	began := d.s.now()
	if hook := d.s.trace.HoldStart; hook != nil {
		ctx = with(ctx, hook(ctx, e))
	}
	d.mu.Lock()
	d.ctx, d.about, d.began = ctx, e, began
	ended := d.why != ""
	d.mu.Unlock()
	if ended {
		d.tell()
	}
}

// end notes why the hold has ended, once, and reports whether tell is to be called: not if it is
// noted already, nor before the hold has begun.
func (d *holdTrace) end(why locktrace.HoldReason, now time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why != "" {
		return false
	}
	d.why = why
	if d.ctx != nil {
		d.held = now - d.began
	}
	return d.ctx != nil
}

// tell tells that the hold has ended. No mutex may be held.
func (d *holdTrace) tell() {
	if hook := d.s.trace.HoldEnd; hook != nil {
		e := d.about
		hook(d.ctx, locktrace.HoldEnd{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N, Nested: e.Nested, Reason: d.why, Held: d.held})
	}
}

// left tells of the end of a hold by a call that was for that, and that began at a time and
// returned err.
func (d *holdTrace) left(why locktrace.HoldReason, at time.Duration, err error) {
	if d == nil || err == ErrNotHeld { // another call has ended it
		return
	}
	switch {
	case errors.Is(err, ErrLost):
		why = locktrace.HoldLost
	case errors.Is(err, ErrClosed):
		why = locktrace.HoldClosed
	}
	if d.end(why, at) {
		d.tell()
	}
}

// releaseStart tells that a release is about to be sent, and returns what tells of its end: its
// error, and whether it found nothing to release. No mutex may be held.
func (d *holdTrace) releaseStart() (end func(err error, gone bool)) {
	if d == nil {
		return func(error, bool) {}
	}
	t, e, began := d.s.trace, d.about, d.s.now()
	ctx := d.ctx
	if t.ReleaseStart != nil {
		ctx = with(ctx, t.ReleaseStart(ctx, locktrace.ReleaseStart{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N}))
	}
	return func(err error, gone bool) {
		if gone && err == nil {
			err = ErrLost
		}
		if t.ReleaseEnd != nil {
			t.ReleaseEnd(ctx, locktrace.ReleaseEnd{Name: e.Name, Kind: e.Kind, Owner: e.Owner, N: e.N, Took: d.s.now() - began, Err: err})
		}
	}
}
