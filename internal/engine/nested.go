package engine

import (
	"context"
	"slices"

	"relock/internal/stdcontext"
	"relock/internal/tracing"
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
	case stdcontext.CancelKey:
		return c.end.Value(key) // context.Cause, and the children of this context
	}
	return c.Context.Value(key)
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
