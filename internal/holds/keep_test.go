package holds

import (
	"context"
	"errors"
	"testing"
)

// Contexts that have ended do not stay with a section that goes on.
func TestEndedContextsDoNotStay(t *testing.T) {
	var c Contexts
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		c.Derive(ctx, nil, nil)
		cancel()
	}
	if len(c.all) != 1 {
		t.Errorf("%d contexts are kept, want the last one only", len(c.all))
	}
}

// What bounds a command ends with End or with its context, is not shared, and does not stay when it is
// released.
func TestBoundIsReleased(t *testing.T) {
	var c Contexts
	end := errors.New("the end")
	ctx, cancel := context.WithCancel(t.Context())
	first, release := c.Bound(ctx)
	second, releaseSecond := c.Bound(ctx)
	nested := c.Derive(ctx, nil, nil)
	release()
	if first.Err() == nil || second.Err() != nil || nested.Err() != nil {
		t.Errorf("one of three was released: %v, %v, %v", first.Err(), second.Err(), nested.Err())
	}
	if len(c.all) != 2 {
		t.Errorf("%d contexts are kept, want 2", len(c.all))
	}
	cancel()
	if second.Err() == nil {
		t.Error("the context that it bounds has ended, and it has not")
	}
	releaseSecond()
	third, release := c.Bound(t.Context())
	defer release()
	c.End(end, AtOnce)
	fourth, release := c.Bound(t.Context())
	defer release()
	if context.Cause(third) != end || context.Cause(fourth) != end {
		t.Errorf("causes %v and %v, want that of End", context.Cause(third), context.Cause(fourth))
	}
}
