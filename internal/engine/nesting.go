package engine

import (
	"context"

	"relock/internal/nestctx"
	"relock/internal/tracing"
)

// nesting is what a section has besides its outermost hold and context: most have none of it.
// It is guarded by the lock's mutex until the section is closed; but for traces it does not
// change after.
type nesting struct {
	fixed    []*Hold          // live holds with a fixed lease
	contexts nestctx.Contexts // of nested Locks; not guarded
	callers  []caller         // that came in under the owner's name, not through the section
	spent    [2]int32         // holds that have run out and are not unlocked, by side
	entering [2]int32         // nested Locks that ask Redis, or wait to: they keep the section open

	traces map[*Hold]*tracing.Hold // of holds that stand; guarded by the mutex to the end
}

// A caller is a hold with a context of its own that wants the claim to be renewed.
type caller struct {
	hold *Hold
	ctx  context.Context
}

// needNesting returns x.nesting, made if need be.
func (x *section) needNesting() *nesting {
	if x.nesting == nil {
		x.nesting = new(nesting)
	}
	return x.nesting
}

func (n *nesting) cancel(cause error) {
	n.contexts.End(cause)
	for _, h := range n.fixed {
		h.endContext(cause)
	}
}

// nestedContext returns the context of a nested Lock on ctx: it has ctx's values, and ends
// with ctx or the section. It runs code of the caller's contexts: no mutex may be held.
func (x *section) nestedContext(ctx context.Context) context.Context {
	// The section stays the one that it lies in, also if the caller came in by the owner's name.
	return x.contexts(ctx).Derive(ctx, sectionKey{}, x)
}

// contexts returns where contexts that are derived from ctx end with the section: nil if ctx does. It
// runs code of the caller's contexts: no mutex may be held.
func (x *section) contexts(ctx context.Context) *nestctx.Contexts {
	if ctx == context.Context(x) || ctx.Done() == x.Done() { // the section's, perhaps with values on top
		return nil
	}
	l := x.claim.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if why := x.Ended(); why != 0 { // its own are ended by what has closed it, which may be at it now
		ended := new(nestctx.Contexts)
		ended.End(why.Cause())
		return ended
	}
	return &x.needNesting().contexts
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
	over := h.ranOut || h.section.hasEnded()
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
