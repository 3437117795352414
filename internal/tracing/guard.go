package tracing

import (
	"context"
	"runtime/debug"

	"relock/locktrace"
)

// Guard returns the hooks in a form that does not panic; nil for nil. A hook runs in the middle of a
// call: a panic would leave what that call has begun, as a place in a queue or a lock that its caller
// never got to see, and where callers recover from panics, as net/http does, nobody would take it
// back. So the call goes on, as if the hook had returned (nil, if it begins something), and told hears
// of it, in the goroutine of the hook.
func Guard(hooks *locktrace.Trace, told func(hook string, panicked any, stack []byte)) *locktrace.Trace {
	if hooks == nil {
		return nil
	}
	return &locktrace.Trace{
		AcquireStart: guardStart("AcquireStart", hooks.AcquireStart, told),
		Waiting:      guardEnd("Waiting", hooks.Waiting, told),
		AcquireEnd:   guardEnd("AcquireEnd", hooks.AcquireEnd, told),
		HoldStart:    guardStart("HoldStart", hooks.HoldStart, told),
		HoldEnd:      guardEnd("HoldEnd", hooks.HoldEnd, told),
		ReleaseStart: guardStart("ReleaseStart", hooks.ReleaseStart, told),
		ReleaseEnd:   guardEnd("ReleaseEnd", hooks.ReleaseEnd, told),
		Attempt:      guardEvent("Attempt", hooks.Attempt, told),
		HandedOver:   guardEvent("HandedOver", hooks.HandedOver, told),
		Lost:         guardEvent("Lost", hooks.Lost, told),
		Renewed:      guardEvent("Renewed", hooks.Renewed, told),
		Subscription: guardEvent("Subscription", hooks.Subscription, told),
	}
}

type teller = func(hook string, panicked any, stack []byte)

// caught is to be deferred itself, for recover asks who calls it.
func caught(name string, told teller) {
	if v := recover(); v != nil {
		told(name, v, debug.Stack())
	}
}

func guardStart[E any](name string, hook func(context.Context, E) context.Context, told teller) func(context.Context, E) context.Context {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, e E) context.Context {
		defer caught(name, told)
		return hook(ctx, e)
	}
}

func guardEnd[E any](name string, hook func(context.Context, E), told teller) func(context.Context, E) {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, e E) {
		defer caught(name, told)
		hook(ctx, e)
	}
}

func guardEvent[E any](name string, hook func(E), told teller) func(E) {
	if hook == nil {
		return nil
	}
	return func(e E) {
		defer caught(name, told)
		hook(e)
	}
}
