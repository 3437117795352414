package engine

import (
	"context"
	"testing"

	"relock/internal/holds"
)

// The context of a nested Lock has ended if its section has been closed meanwhile, whatever that has
// cancelled so far; what is sent in the section has too.
func TestANestedContextOfAClosedSectionHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x := &section{ctx: holds.Context{Parent: t.Context()}, claim: &claim{lock: &lock{}}}
	before := x.nestedContext(ctx)
	x.holds.Until = holds.Over
	x.ctx.End(lost) // the section is closed, and its contexts are about to be cancelled
	command, release := x.contexts(ctx).Bound(ctx)
	defer release()
	for what, got := range map[string]context.Context{"nested Lock": x.nestedContext(ctx), "command": command} {
		if cause := context.Cause(got); cause != ErrLost {
			t.Errorf("the context of a %s ended by %v, want %v", what, cause, ErrLost)
		}
	}
	if before.Err() != nil {
		t.Error("the context of an earlier nested Lock was ended by another than what closes the section")
	}
	x.cancel(holds.AtOnce)
	if cause := context.Cause(before); cause != ErrLost {
		t.Errorf("the context of an earlier nested Lock ended by %v, want %v", cause, ErrLost)
	}
}
