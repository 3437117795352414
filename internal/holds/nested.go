package holds

import (
	"context"
	"slices"
	"sync"
)

// Contexts are those of one section. The zero value is empty; nil is for contexts that end with the
// section anyway, and leaves them as they are. It is safe for concurrent use.
//
// Those that were derived from contexts with the same Done share what can be cancelled, so that a
// long section does not collect it.
type Contexts struct {
	mu    sync.Mutex
	all   []child
	over  bool
	cause error
}

// A child is what can be cancelled of contexts that were derived from others.
type child struct {
	cancellation
	parent <-chan struct{} // Done of those
	own    bool            // it is shared with no other: see Bound
}

// Derive returns a context with the values of ctx, but for one value, that ends with ctx or with End.
// It runs code of the caller's context.
func (c *Contexts) Derive(ctx context.Context, key, value any) context.Context {
	if c == nil {
		return ctx
	}
	done := ctx.Done()
	c.mu.Lock()
	for _, e := range c.all {
		if e.parent == done && !e.own {
			c.mu.Unlock()
			return &derived{ctx, e.ctx, key, value}
		}
	}
	c.mu.Unlock() // while code of the caller's context runs, and so two may be made for one ctx
	return &derived{ctx, c.add(ctx, child{parent: done}).ctx, key, value}
}

// Bound returns a context that ends with ctx, with End or when it is released, of which nothing stays
// then. It runs code of the caller's context, and so does release.
func (c *Contexts) Bound(ctx context.Context) (bound context.Context, release func()) {
	if c == nil {
		return ctx, func() {}
	}
	e := c.add(ctx, child{own: true})
	return e.ctx, func() {
		e.cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = slices.DeleteFunc(c.all, func(o child) bool { return o.ctx == e.ctx })
	}
}

// add makes what can be cancelled of a context, and takes it in unless End has come before.
func (c *Contexts) add(ctx context.Context, e child) child {
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	c.mu.Lock()
	over, cause := c.over, c.cause
	if !over {
		c.all = slices.DeleteFunc(c.all, func(e child) bool { return e.ctx.Err() != nil })
		c.all = append(c.all, e)
	}
	c.mu.Unlock()
	if over {
		e.cancel(cause)
	}
	return e
}

// End ends the contexts, and those that are derived from now on. The first cause counts. It runs
// code of the callers' contexts, which may block: run runs what ends each of them.
func (c *Contexts) End(cause error, run func(end func())) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over, c.cause = true, cause
	all := c.all
	c.all = nil
	c.mu.Unlock()
	for _, e := range all {
		run(func() { e.cancel(cause) })
	}
}

// AtOnce runs what ends a context where its caller waits for it.
func AtOnce(end func()) { end() }

// derived has the values of one context and the end of another, which is derived from a context
// with the same Done.
type derived struct {
	context.Context
	end        context.Context
	key, value any
}

func (c *derived) Done() <-chan struct{} { return c.end.Done() }
func (c *derived) Err() error            { return c.end.Err() }

func (c *derived) Value(key any) any {
	switch key {
	case c.key:
		return c.value
	case CancelKey: // context.Cause, and the children of this context
		return c.end.Value(key)
	}
	return c.Context.Value(key)
}
