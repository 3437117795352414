package holds

import (
	"context"
	"time"
)

// Foreign reports whether ctx ends by other means than those of package context. The end of
// such a context is found out by a goroutine that package context starts, never by asking it
// where others would wait for the answer. It runs code of ctx.
func Foreign(ctx context.Context) bool {
	if ctx.Done() == nil {
		return false
	}
	std, ok := ctx.Value(CancelKey).(context.Context)
	return !ok || std.Done() != ctx.Done()
}

// CancelKey is the key under which package context looks for the cancellation behind a
// context. It is not exported, but context.Cause asks for it. (Should that ever change,
// contexts that answer it still end when they must; only their cause would be that of the context
// around them.)
var CancelKey = func() any {
	var k keyCatcher
	_ = context.Cause(&k)
	return k.key
}()

type keyCatcher struct{ key any }

func (*keyCatcher) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*keyCatcher) Done() <-chan struct{}       { return nil }
func (*keyCatcher) Err() error                  { return context.Canceled } // else the cause is not asked for
func (k *keyCatcher) Value(key any) any         { k.key = key; return nil }
