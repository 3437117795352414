package otel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"relock/locktrace"
	"relock/otel"
	"relock/rlock"
)

// Hooks end and describe the spans that they have begun, and no other: neither the caller's, where the start hook has
// panicked or was left out, nor one that other hooks beside them begin.
func TestSpansOfOthers(t *testing.T) {
	// use waits for a lock, takes it, and leaves it, in a span of the caller's.
	use := func(t *testing.T, change func(s *stage, hooks *rlock.Trace)) (ours int) {
		s := newStage(t, rlock.Config{})
		hooks := *s.trace
		change(s, &hooks)
		session := s.redis.Session(t, rlock.Config{Trace: &hooks})
		_, held, err := rlock.New(s.redis.Session(t, rlock.Config{}), "job").Lock(t.Context())
		must(t, err)
		ctx, request := s.tracer.Tracer("test").Start(t.Context(), "request")
		if _, _, err := rlock.New(session, "job").Lock(ctx, rlock.Wait(time.Second)); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Fatal(err)
		}
		must(t, held.Unlock())
		_, h, err := rlock.New(session, "job").Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		if !request.IsRecording() {
			t.Error("the caller's span has ended")
		}
		request.End()
		for _, span := range s.spans.Ended() {
			if span.Name() == "relock acquire" || span.Name() == "relock release" {
				ours++
			} else if len(span.Events()) > 0 || len(span.Attributes()) > 0 {
				t.Errorf("%s has %v, %v", span.Name(), span.Events(), span.Attributes())
			}
		}
		return ours
	}
	for what, c := range map[string]struct {
		change func(s *stage, hooks *rlock.Trace)
		want   int // spans of such hooks
	}{
		"as they are":   {func(*stage, *rlock.Trace) {}, 3},
		"without spans": {func(_ *stage, hooks *rlock.Trace) { hooks.AcquireStart, hooks.ReleaseStart = nil, nil }, 0},
		"a start hook that panics": {func(_ *stage, hooks *rlock.Trace) {
			hooks.AcquireStart = func(context.Context, locktrace.AcquireStart) context.Context { panic("a bug") }
		}, 1},
		"beside hooks that begin a span": {func(s *stage, hooks *rlock.Trace) {
			start, end := hooks.AcquireStart, hooks.AcquireEnd
			hooks.AcquireStart = func(ctx context.Context, e locktrace.AcquireStart) context.Context {
				ctx, _ = s.tracer.Tracer("test").Start(start(ctx, e), "theirs")
				return ctx
			}
			hooks.AcquireEnd = func(ctx context.Context, e locktrace.AcquireEnd) {
				end(ctx, e)
				theirs := trace.SpanFromContext(ctx)
				if !theirs.IsRecording() {
					t.Error("their span has ended")
				}
				theirs.End()
			}
		}, 3},
		"beside hooks of this package": {func(s *stage, hooks *rlock.Trace) {
			others, err := otel.New(otel.WithTracerProvider(s.tracer))
			must(t, err)
			start, end := hooks.AcquireStart, hooks.AcquireEnd
			hooks.AcquireStart = func(ctx context.Context, e locktrace.AcquireStart) context.Context {
				return others.AcquireStart(start(ctx, e), e)
			}
			hooks.AcquireEnd = func(ctx context.Context, e locktrace.AcquireEnd) {
				others.AcquireEnd(ctx, e)
				end(ctx, e)
			}
		}, 5},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if n := use(t, c.change); n != c.want {
					t.Errorf("%d spans of these hooks have ended, want %d", n, c.want)
				}
			})
		})
	}
}
