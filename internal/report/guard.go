package report

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"relock/locktrace"
)

// Guard returns the hooks in a form in which all may be called, and do not panic; nil for nil. A hook runs in the middle of a
// call: a panic would leave what that call has begun, as a place in a queue or a lock that its caller
// never got to see, and where callers recover from panics, as net/http does, nobody would take it
// back. So the call goes on, as if the hook had returned (nil, if it begins something), and log is told,
// in the goroutine of the hook: it must not block.
func Guard(hooks *locktrace.Trace, log *slog.Logger) *locktrace.Trace {
	if hooks == nil {
		return nil
	}
	return &locktrace.Trace{
		AcquireStart: guardStart("AcquireStart", hooks.AcquireStart, log),
		Waiting:      guardEnd("Waiting", hooks.Waiting, log),
		AcquireEnd:   guardEnd("AcquireEnd", hooks.AcquireEnd, log),
		HoldStart:    guardStart("HoldStart", hooks.HoldStart, log),
		HoldEnd:      guardEnd("HoldEnd", hooks.HoldEnd, log),
		ReleaseStart: guardStart("ReleaseStart", hooks.ReleaseStart, log),
		ReleaseEnd:   guardEnd("ReleaseEnd", hooks.ReleaseEnd, log),
		Attempt:      guardEvent("Attempt", hooks.Attempt, log),
		HandedOver:   guardEvent("HandedOver", hooks.HandedOver, log),
		Lost:         guardEvent("Lost", hooks.Lost, log),
		Renewed:      guardEvent("Renewed", hooks.Renewed, log),
		Subscription: guardEvent("Subscription", hooks.Subscription, log),
		Line:         guardEvent("Line", hooks.Line, log),
		Kept:         guardEvent("Kept", hooks.Kept, log),
	}
}

// caught is to be deferred itself, for recover asks who calls it.
func caught(name string, log *slog.Logger) {
	if v := recover(); v != nil {
		log.Error("relock: a hook has panicked; the session goes on", "hook", name, "panic", v, "stack", string(debug.Stack()))
	}
}

// GuardBackoff is [Guard] for the Backoff of a session that polls, which its heartbeats ask too; nil for nil. If it panics, it
// gives up.
func GuardBackoff(pause func(n int) time.Duration, log *slog.Logger) func(n int) time.Duration {
	if pause == nil {
		return nil
	}
	return func(n int) (d time.Duration) {
		d = -1
		defer caught("Polling", log)
		return pause(n)
	}
}

// guardStart returns a hook that returns a context in any case: ctx, if it has no other.
func guardStart[E any](name string, hook func(context.Context, E) context.Context, log *slog.Logger) func(context.Context, E) context.Context {
	return func(ctx context.Context, e E) (in context.Context) {
		in = ctx
		defer caught(name, log)
		if hook != nil {
			if own := hook(ctx, e); own != nil {
				in = own
			}
		}
		return in
	}
}

func guardEnd[E any](name string, hook func(context.Context, E), log *slog.Logger) func(context.Context, E) {
	return func(ctx context.Context, e E) {
		defer caught(name, log)
		if hook != nil {
			hook(ctx, e)
		}
	}
}

func guardEvent[E any](name string, hook func(E), log *slog.Logger) func(E) {
	return func(e E) {
		defer caught(name, log)
		if hook != nil {
			hook(e)
		}
	}
}
