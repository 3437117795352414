package engine

import (
	"context"

	"relock/internal/holds"
)

// nestedContext returns the context of a nested Lock on ctx: it has ctx's values, and ends
// with ctx or the section. It runs code of the caller's contexts: no mutex may be held.
func (x *section) nestedContext(ctx context.Context) context.Context {
	// The section stays the one that it lies in, also if the caller came in by the owner's name.
	return x.contexts(ctx).Derive(ctx, sectionKey{}, x)
}

// contexts returns where contexts that are derived from ctx end with the section: nil if ctx does. It
// runs code of the caller's contexts: no mutex may be held.
func (x *section) contexts(ctx context.Context) *holds.Contexts {
	if ctx == context.Context(x) || ctx.Done() == x.Done() { // the section's, perhaps with values on top
		return nil
	}
	l := x.claim.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if why := x.ctx.Ended(); why != 0 { // its own are ended by what has closed it, which may be at it now
		ended := new(holds.Contexts)
		ended.End(why.Cause(), holds.AtOnce)
		return ended
	}
	return &x.holds.NeedNested().Contexts
}

// ownContext gives a nested hold with a fixed lease a context of its own, since it may end
// before the section. No mutex may be held.
func (h *Hold) ownContext(ctx context.Context) context.Context {
	if h.held.Fixed == nil {
		return ctx
	}
	own, cancel := context.WithCancelCause(ctx)
	l := h.section.claim.lock
	l.mu.Lock()
	if !h.held.RanOut && !h.section.ctx.HasEnded() {
		h.held.Cancel = cancel
		l.unlock()
		return own
	}
	l.unlock() // what has ended it may just be reading what there is to be cancelled
	cancel(ErrLost)
	return own
}
