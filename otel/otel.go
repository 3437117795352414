package otel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	global "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"relock/locktrace"
	"relock/rlock"
)

// scope is the name of the meter and of the tracer.
const scope = "relock/otel"

// The keys of the attributes.
const (
	keyKind    = attribute.Key("relock.lock.kind")
	keyName    = attribute.Key("relock.lock.name")
	keyNested  = attribute.Key("relock.nested")
	keyOutcome = attribute.Key("relock.acquire.outcome")
	keyGrant   = attribute.Key("relock.acquire.grant")
	keyAttempt = attribute.Key("relock.attempt.result")
	keyEnd     = attribute.Key("relock.hold.end")
	keyResult  = attribute.Key("relock.result")
	keyState   = attribute.Key("relock.subscription.state")
	keyLine    = attribute.Key("relock.line.event")
	keyKept    = attribute.Key("relock.keep.event")
)

// Option adjusts what [New] returns.
type Option func(*recorder)

// WithMeterProvider sets where metrics go. Default: the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(r *recorder) { r.meters = p }
}

// WithTracerProvider sets where spans go. Default: the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(r *recorder) { r.tracers = p }
}

// WithLockName adds the attribute relock.lock.name to metrics and spans, with the value that
// name returns for the name of a lock; none for "". Return few different values: each makes
// time series of its own. By default names are not recorded. It is called in lock operations,
// by many goroutines, and must be quick.
func WithLockName(name func(lock string) string) Option {
	return func(r *recorder) { r.name = name }
}

// New returns hooks for Config.Trace. It does no I/O. Errors: a nil provider or function, and
// those of the provider's instruments.
func New(opts ...Option) (*rlock.Trace, error) {
	r := &recorder{meters: global.GetMeterProvider(), tracers: global.GetTracerProvider(), name: func(string) string { return "" }}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("relock/otel: an option is nil")
		}
		o(r)
	}
	switch {
	case r.meters == nil:
		return nil, errors.New("relock/otel: WithMeterProvider(nil): a metric.MeterProvider is needed")
	case r.tracers == nil:
		return nil, errors.New("relock/otel: WithTracerProvider(nil): a trace.TracerProvider is needed")
	case r.name == nil:
		return nil, errors.New("relock/otel: WithLockName(nil): leave the option out to record no names")
	}
	r.tracer = r.tracers.Tracer(scope, trace.WithInstrumentationVersion(rlock.Version))
	var err error
	if r.instruments, err = newInstruments(r.meters.Meter(scope, metric.WithInstrumentationVersion(rlock.Version))); err != nil {
		return nil, fmt.Errorf("relock/otel: %w", err)
	}
	for _, s := range []locktrace.SubscriptionState{locktrace.SubscriptionConnected, locktrace.SubscriptionLost,
		locktrace.SubscriptionClosed, locktrace.SubscriptionRefused, locktrace.SubscriptionPolling} {
		r.events.Add(context.Background(), 0, set(keyState.String(string(s))))
	}
	// A counter that appears with its first count hides that count from rates.
	r.renewals.Add(context.Background(), 0, set(result(nil)))
	r.renewals.Add(context.Background(), 0, set(keyResult.String("error")))
	return r.trace(), nil
}

// A recorder records what the hooks are told.
type recorder struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	tracer  trace.Tracer
	name    func(string) string
	seen    sync.Map // of the locks whose losses have a time series
	instruments
}

func (r *recorder) trace() *rlock.Trace {
	return &rlock.Trace{
		AcquireStart: r.acquireStart, Waiting: r.waiting, AcquireEnd: r.acquireEnd,
		HoldStart: r.holdStart, HoldEnd: r.holdEnd,
		ReleaseStart: r.releaseStart, ReleaseEnd: r.releaseEnd,
		Attempt: r.attempt, Renewed: r.renewed, Subscription: r.subscription, Line: r.line, Kept: r.keptEvent,
	}
}

// about returns the attributes of a lock, and more.
func (r *recorder) about(name, kind string, more ...attribute.KeyValue) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 6), keyKind.String(kind))
	if n := r.name(name); n != "" {
		all = append(all, keyName.String(n))
	}
	return append(all, more...)
}

func set(kv ...attribute.KeyValue) metric.MeasurementOption { return metric.WithAttributes(kv...) }

func result(err error) attribute.KeyValue {
	if err != nil {
		return keyResult.String("error")
	}
	return keyResult.String("ok")
}

// spanKey is the key of the span that a start hook has begun. The span of the context itself may be another one: the
// caller's, if the start hook has panicked or was left out, or one of hooks that an application calls beside these.
type spanKey struct{ of *recorder }

// start begins a span.
func (r *recorder) start(ctx context.Context, span, name, kind string) context.Context {
	ctx, begun := r.tracer.Start(ctx, span, trace.WithAttributes(r.about(name, kind)...))
	return context.WithValue(ctx, spanKey{r}, begun)
}

// spanOf returns the span that a start hook has begun; one that records nothing if there is none.
func (r *recorder) spanOf(ctx context.Context) trace.Span {
	if begun, ok := ctx.Value(spanKey{r}).(trace.Span); ok {
		return begun
	}
	return trace.SpanFromContext(context.Background())
}

func (r *recorder) acquireStart(ctx context.Context, e locktrace.AcquireStart) context.Context {
	return r.start(ctx, "relock acquire", e.Name, e.Kind)
}

func (r *recorder) waiting(ctx context.Context, e locktrace.Waiting) {
	r.spanOf(ctx).AddEvent("waiting")
	r.waiters.Add(ctx, 1, set(r.about(e.Name, e.Kind)...))
}

func (r *recorder) acquireEnd(ctx context.Context, e locktrace.AcquireEnd) {
	if e.Waited {
		r.waiters.Add(ctx, -1, set(r.about(e.Name, e.Kind)...))
	}
	about := r.about(e.Name, e.Kind, keyOutcome.String(string(e.Outcome)), keyNested.Bool(e.Nested))
	if e.Grant != "" {
		about = append(about, keyGrant.String(string(e.Grant)))
	}
	attributes := set(about...)
	r.acquires.Add(ctx, 1, attributes)
	r.acquiring.Record(ctx, e.Wait.Seconds(), attributes)
	failed := e.Outcome == locktrace.OutcomeUnavailable || e.Outcome == locktrace.OutcomeFailed
	r.endSpan(ctx, e.Err, failed, about[1:]...)
}

// endSpan ends the span of ctx; failed says that err is an error and no ordinary outcome.
func (r *recorder) endSpan(ctx context.Context, err error, failed bool, about ...attribute.KeyValue) {
	span := r.spanOf(ctx)
	span.SetAttributes(about...)
	if failed {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

func (r *recorder) holdStart(ctx context.Context, e locktrace.HoldStart) context.Context {
	about := r.about(e.Name, e.Kind)
	// A counter that appears with its first count hides that count from rates.
	all := attribute.NewSet(about...)
	key := all.Equivalent()
	if _, seen := r.seen.LoadOrStore(key, true); !seen {
		r.lost.Add(ctx, 0, set(about...))
	}
	r.holds.Add(ctx, 1, set(append(about, keyNested.Bool(e.Nested))...))
	return ctx
}

func (r *recorder) holdEnd(ctx context.Context, e locktrace.HoldEnd) {
	about := r.about(e.Name, e.Kind)
	if e.Reason == locktrace.HoldLost {
		r.lost.Add(ctx, 1, set(about...))
	}
	about = append(about, keyNested.Bool(e.Nested))
	r.holds.Add(ctx, -1, set(about...))
	r.holding.Record(ctx, e.Held.Seconds(), set(append(about, keyEnd.String(string(e.Reason)))...))
}

func (r *recorder) releaseStart(ctx context.Context, e locktrace.ReleaseStart) context.Context {
	return r.start(ctx, "relock release", e.Name, e.Kind)
}

func (r *recorder) releaseEnd(ctx context.Context, e locktrace.ReleaseEnd) {
	r.releasing.Record(ctx, e.Took.Seconds(), set(r.about(e.Name, e.Kind, result(e.Err))...))
	r.endSpan(ctx, e.Err, e.Err != nil)
}

func (r *recorder) attempt(e locktrace.Attempt) {
	what := "refused"
	switch {
	case e.Err != nil:
		what = "error"
	case e.Granted:
		what = "granted"
	}
	r.attempts.Add(context.Background(), 1, set(r.about(e.Name, e.Kind, keyAttempt.String(what))...))
}

func (r *recorder) renewed(e locktrace.Renewed) {
	ctx, attributes := context.Background(), set(result(e.Err))
	r.renewals.Add(ctx, int64(e.Claims), attributes)
	r.renewing.Record(ctx, e.Took.Seconds(), attributes)
}

func (r *recorder) subscription(e locktrace.Subscription) {
	ctx := context.Background()
	switch e.State {
	case locktrace.SubscriptionConnected:
		r.connections.Add(ctx, 1)
	case locktrace.SubscriptionLost, locktrace.SubscriptionClosed:
		r.connections.Add(ctx, -1)
	}
	r.events.Add(ctx, 1, set(keyState.String(string(e.State))))
}

func (r *recorder) line(e locktrace.Line) {
	r.lines.Add(context.Background(), 1, set(r.about(e.Name, e.Kind, keyLine.String(string(e.What)))...))
}

func (r *recorder) keptEvent(e locktrace.Kept) {
	ctx := context.Background()
	switch e.What {
	case locktrace.KeptBegins:
		r.kept.Add(ctx, 1, set(r.about(e.Name, e.Kind)...))
	case locktrace.KeptReused, locktrace.KeptGivenBack, locktrace.KeptOver:
		r.kept.Add(ctx, -1, set(r.about(e.Name, e.Kind)...))
	}
	r.keeps.Add(ctx, 1, set(r.about(e.Name, e.Kind, keyKept.String(string(e.What)))...))
}
