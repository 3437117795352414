package life

import (
	"context"
	"log/slog"
	"time"
)

// An Env is what the parts of a session have of it.
type Env struct {
	Context    context.Context      // when it ends, nothing more is done
	Background *Group               // counts every goroutine
	Clock      func() time.Duration // a monotonic one
	WakeAt     func(at time.Duration)
	Log        *slog.Logger // in no caller's way: it may be called under any mutex
}
