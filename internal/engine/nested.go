package engine

import (
	"context"
	"slices"
	"time"

	"relock/internal/tracing"
	"relock/locktrace"
)

// nesting is what a section has besides its outermost hold and context: most have none of it.
// It is guarded by the lock's mutex until the section is closed; but for traces it does not
// change after.
type nesting struct {
	fixed     []*Hold            // live holds with a fixed lease
	inner     []innerContext     // contexts of nested Locks
	callers   []caller           // that came in under the owner's name, not through the section
	spent     [2]int32           // holds that have run out and are not unlocked, by side
	entering  [2]int32           // nested Locks that ask Redis, or wait to: they keep the section open
	interrupt context.CancelFunc // ends a nested Lock that is under way

	traces map[*Hold]*tracing.Hold // of holds that stand; guarded by the mutex to the end
}

// innerContext is a context made for nested Locks: derived from what they were given, ended
// with the section. Nested Locks that are given contexts with the same Done share one, so
// that a long section does not collect them.
type innerContext struct {
	parent <-chan struct{}
	cancellation
}

// A caller is a hold with a context of its own that wants the claim to be renewed.
type caller struct {
	hold *Hold
	ctx  context.Context
}

// extra returns x.more, made if need be.
func (x *section) extra() *nesting {
	if x.more == nil {
		x.more = new(nesting)
	}
	return x.more
}

func (n *nesting) cancel(cause error) {
	if n.interrupt != nil {
		n.interrupt()
	}
	for _, in := range n.inner {
		in.cancel(cause)
	}
	for _, h := range n.fixed {
		h.endContext(cause)
	}
}

// nestedContext returns the context of a nested Lock on ctx: it has ctx's values, and ends
// with ctx or the section. It runs code of the caller's contexts: no mutex may be held.
func (x *section) nestedContext(ctx context.Context) context.Context {
	if ctx == context.Context(x) {
		return ctx
	}
	done := ctx.Done()
	if done == x.Done() {
		return ctx // the section's, with values on top
	}
	mu := &x.claim.lock.mu
	mu.Lock()
	if in := x.innerOf(done); in != nil {
		mu.Unlock()
		return &valuesOf{Context: ctx, end: in, section: x}
	}
	mu.Unlock()
	m := cancellation{}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	mu.Lock()
	why := ending(x.ended.Load())
	if why == 0 {
		n := x.extra()
		n.inner = slices.DeleteFunc(n.inner, func(in innerContext) bool { return in.ctx.Err() != nil })
		n.inner = append(n.inner, innerContext{done, m})
	}
	mu.Unlock()
	if why != 0 {
		m.cancel(why.cause())
	}
	return &valuesOf{Context: ctx, end: m.ctx, section: x}
}

// innerOf returns the living context that was made for another with the same Done, or nil.
func (x *section) innerOf(done <-chan struct{}) context.Context {
	if x.more != nil {
		for _, in := range x.more.inner {
			if in.parent == done && in.ctx.Err() == nil {
				return in.ctx
			}
		}
	}
	return nil
}

// valuesOf has the values of one context and the end of another, which is derived from a
// context with the same Done.
type valuesOf struct {
	context.Context
	end     context.Context
	section *section // that it lies in, also if the caller came in by the owner's name
}

func (c *valuesOf) Done() <-chan struct{} { return c.end.Done() }
func (c *valuesOf) Err() error            { return c.end.Err() }

func (c *valuesOf) Value(key any) any {
	switch key {
	case sectionKey{}:
		return c.section
	case cancelKey:
		return c.end.Value(key) // context.Cause, and the children of this context
	}
	return c.Context.Value(key)
}

// add counts a hold in the section.
func (x *section) add(h *Hold) {
	x.live[h.side]++
	if h.fixed != nil {
		n := x.extra()
		n.fixed = append(n.fixed, h)
		x.settleEnd()
		return
	}
	x.auto++
	switch {
	case !x.claim.prim.Kind().Shares:
		x.until = never
	case x.auto == 1: // fixed leases no longer count; renewals move the end
		x.until = x.claim.trust
	default:
		x.until = max(x.until, x.claim.trust)
	}
}

// remove takes a hold out of the count.
func (x *section) remove(h *Hold) {
	if x.claim.num == 0 {
		delete(x.claim.more.holds, h)
	}
	if x.more != nil {
		delete(x.more.traces, h)
	}
	if h.ranOut {
		x.more.spent[h.side]--
		return
	}
	x.live[h.side]--
	if h.fixed == nil {
		x.auto--
	}
	if x.more != nil {
		if !x.over() {
			x.more.fixed = slices.DeleteFunc(x.more.fixed, func(f *Hold) bool { return f == h })
			x.more.callers = slices.DeleteFunc(x.more.callers, func(c caller) bool { return c.hold == h })
		}
		x.settleEnd()
	}
}

// held returns the number of live holds of both sides, and of those that are just being taken.
func (x *section) held() int {
	n := x.live[0] + x.live[1]
	if x.more != nil {
		n += x.more.entering[0] + x.more.entering[1]
	}
	return int(n)
}

// fixedHolds returns the live holds with a fixed lease.
func (x *section) fixedHolds() []*Hold {
	if x.more == nil {
		return nil
	}
	return x.more.fixed
}

// settleEnd sets the end of a section that only holds with fixed leases keep: it ends with the
// last of them.
func (x *section) settleEnd() {
	if x.auto == 0 && len(x.fixedHolds()) > 0 {
		x.until = x.lastFixed(func(h *Hold) time.Duration { return h.end })
	}
}

// lastFixed returns the latest of a time of the holds with a fixed lease; 0 if there are none.
func (x *section) lastFixed(of func(h *Hold) time.Duration) (last time.Duration) {
	for _, h := range x.fixedHolds() {
		last = max(last, of(h))
	}
	return last
}

// runOut ends the holds whose fixed lease is over, and returns those with a context of their
// own to be cancelled, without the mutex.
func (x *section) runOut(now time.Duration) (ended []*Hold) {
	if x.more == nil {
		return nil
	}
	kept := x.more.fixed[:0]
	for _, h := range x.more.fixed {
		if h.end > now {
			kept = append(kept, h)
			continue
		}
		h.ranOut = true
		x.endTrace(h, locktrace.HoldExpired)
		x.live[h.side]--
		x.more.spent[h.side]++
		if h.cancel != nil {
			ended = append(ended, h)
		}
	}
	clear(x.more.fixed[len(kept):])
	x.more.fixed = kept
	if ended != nil || x.auto == 0 {
		x.settleEnd()
	}
	return ended
}
