package report_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"relock/internal/api"
	"relock/internal/report"
	"relock/locktrace"
)

type key struct{}

// A log is what hooks were called, each with what is in its context, in their order.
type log struct{ lines []string }

func (l *log) add(ctx context.Context, format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...)+fmt.Sprintf(" ctx=%v", ctx.Value(key{})))
}

// hooks returns hooks that write a log.
func (l *log) hooks() *locktrace.Trace {
	return &locktrace.Trace{
		AcquireStart: func(ctx context.Context, e locktrace.AcquireStart) context.Context {
			l.add(ctx, "acquire %s %d try=%v", e.Name, e.N, e.Try)
			return context.WithValue(ctx, key{}, "acquire")
		},
		Waiting: func(ctx context.Context, e locktrace.Waiting) { l.add(ctx, "waiting %d", e.Queue) },
		AcquireEnd: func(ctx context.Context, e locktrace.AcquireEnd) {
			l.add(ctx, "end %s waited=%v queue=%d grant=%q holds=%d wait=%v", e.Outcome, e.Waited, e.Queue, e.Grant, e.Holds, e.Wait)
		},
		HoldStart: func(ctx context.Context, e locktrace.HoldStart) context.Context {
			l.add(ctx, "hold nested=%v", e.Nested)
			return context.WithValue(ctx, key{}, "hold")
		},
		HoldEnd: func(ctx context.Context, e locktrace.HoldEnd) { l.add(ctx, "over %s %v", e.Reason, e.Held) },
		ReleaseStart: func(ctx context.Context, e locktrace.ReleaseStart) context.Context {
			l.add(ctx, "release")
			return nil
		},
		ReleaseEnd: func(ctx context.Context, e locktrace.ReleaseEnd) { l.add(ctx, "released %v %v", e.Took, e.Err) },
	}
}

func (l *log) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(l.lines, lines) {
		t.Errorf("hooks were called:\n%q\nwant:\n%q", l.lines, lines)
	}
}

var about = report.About{Name: "x", Kind: "mutex", N: 1}

// A clock that goes on by a second with each look.
func clock() func() time.Duration {
	now := time.Duration(0)
	return func() time.Duration { now += time.Second; return now }
}

// tracer returns a Tracer of hooks.
func tracer(hooks *locktrace.Trace, clock func() time.Duration) *report.Tracer {
	return report.NewTracer(report.Guard(hooks, slog.New(slog.DiscardHandler)), clock)
}

// Each end hook gets the context of its start, and the hold's is derived from the caller's; a
// start hook that returns nil passes its own on.
func TestOneCall(t *testing.T) {
	var l log
	tr, ctx := tracer(l.hooks(), clock()), context.Background()
	var c report.Call
	tr.AcquireStart(ctx, &c, about, false)
	tr.Waiting(&c, about)
	tr.Waiting(&c, about)
	h := tr.NewHold(&c)
	tr.AcquireEnd(ctx, &c, about, locktrace.OutcomeAcquired, true, nil)
	end := h.ReleaseStart(nil)
	end(errors.New("late"), true)
	if h.End(locktrace.HoldReleased, 10*time.Second) {
		h.Tell()
	}
	if h.End(locktrace.HoldLost, 11*time.Second) {
		t.Error("the hold has ended twice")
	}
	l.want(t,
		"acquire x 1 try=false ctx=<nil>", "waiting 1 ctx=acquire",
		`end acquired waited=true queue=0 grant="redis" holds=1 wait=1s ctx=acquire`,
		"hold nested=false ctx=<nil>",
		"release ctx=hold", "released 1s late ctx=hold", "over released 7s ctx=hold")
}

// A call that fails begins no hold, though one was made for it, and tells no grant.
func TestFailedCall(t *testing.T) {
	var l log
	tr, ctx := tracer(l.hooks(), clock()), context.Background()
	var c report.Call
	tr.AcquireStart(ctx, &c, about, true)
	h := tr.NewHold(&c)
	if h.End(locktrace.HoldLost, time.Second) {
		t.Error("the end of a hold is to be told that has not begun")
	}
	tr.AcquireEnd(ctx, &c, about, locktrace.OutcomeCancelled, false, context.Canceled)
	l.want(t, "acquire x 1 try=true ctx=<nil>", `end cancelled waited=false queue=0 grant="" holds=0 wait=1s ctx=acquire`)
}

// A hold that ends before its HoldStart has returned is told to end behind that, once.
func TestHoldEndsWhileItBegins(t *testing.T) {
	for name, when := range map[string]string{"before": "AcquireEnd", "meanwhile": "HoldStart"} {
		t.Run(name, func(t *testing.T) {
			var l log
			hooks := l.hooks()
			var h *report.Hold
			ends := func() {
				if h.End(locktrace.HoldLost, time.Minute) {
					t.Error("the end is told before the beginning")
				}
			}
			start := hooks.HoldStart
			hooks.HoldStart = func(ctx context.Context, e locktrace.HoldStart) context.Context {
				if when == "HoldStart" {
					ends()
				}
				return start(ctx, e)
			}
			tr, ctx := tracer(hooks, clock()), context.Background()
			var c report.Call
			tr.AcquireStart(ctx, &c, about, false)
			h = tr.NewHold(&c)
			if when == "AcquireEnd" {
				ends()
			}
			tr.AcquireEnd(ctx, &c, about, locktrace.OutcomeAcquired, true, nil)
			if h.End(locktrace.HoldReleased, time.Minute) {
				t.Error("it has ended twice")
			}
			if got := l.lines[2:]; !slices.Equal(got, []string{"hold nested=false ctx=<nil>", "over lost 0s ctx=hold"}) {
				t.Errorf("hooks were called: %q", got)
			}
		})
	}
}

// Without hooks, or without some of them, nothing happens.
func TestNoHooks(t *testing.T) {
	if report.NewTracer(nil, clock()) != nil {
		t.Fatal("a Tracer without hooks")
	}
	tr := tracer(new(locktrace.Trace), clock())
	var c report.Call
	tr.Attempt(about, true, nil)
	tr.Hooks.HandedOver(locktrace.HandedOver(about))
	tr.Hooks.Renewed(locktrace.Renewed{})
	tr.Hooks.Lost(locktrace.Lost{})
	tr.Hooks.Subscription(locktrace.Subscription{})
	tr.Hooks.Line(locktrace.Line{})
	tr.AcquireStart(t.Context(), &c, about, false)
	tr.Waiting(&c, about)
	h := tr.NewHold(&c)
	tr.AcquireEnd(t.Context(), &c, about, locktrace.OutcomeAcquired, true, nil)
	h.ReleaseStart(nil)(nil, true)
	if !h.End(locktrace.HoldReleased, 0) {
		t.Error("the hold has not ended")
	}
	h.Tell()
}

// What ended a hold is told by the error of the call that was for it, once.
func TestLeft(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "over released 1s ctx=hold"},
		{errors.New("other"), "over released 1s ctx=hold"},
		{fmt.Errorf("so: %w", api.ErrLost), "over lost 1s ctx=hold"},
		{fmt.Errorf("so: %w", api.ErrClosed), "over closed 1s ctx=hold"},
		{api.ErrNotHeld, ""},
	} {
		var l log
		var call report.Call
		tr := tracer(l.hooks(), func() time.Duration { return time.Second })
		tr.AcquireStart(t.Context(), &call, about, false)
		h := tr.NewHold(&call)
		tr.AcquireEnd(t.Context(), &call, about, locktrace.OutcomeAcquired, true, nil)
		l.lines = nil
		h.Left(locktrace.HoldReleased, 2*time.Second, c.err)
		h.Left(locktrace.HoldReleased, 2*time.Second, api.ErrNotHeld)
		var want []string
		if c.want != "" {
			want = append(want, c.want)
		}
		l.want(t, want...)
	}
}

// A release that finds nothing ends with the loss, unless an error says more.
func TestReleaseOfWhatIsGone(t *testing.T) {
	for _, c := range []struct {
		err  error
		gone bool
		want error
	}{
		{nil, false, nil}, {nil, true, api.ErrLost}, {context.Canceled, true, context.Canceled},
	} {
		var got error
		var call report.Call
		tr := tracer(&locktrace.Trace{ReleaseEnd: func(_ context.Context, e locktrace.ReleaseEnd) { got = e.Err }},
			func() time.Duration { return 0 })
		tr.AcquireStart(t.Context(), &call, about, false)
		h := tr.NewHold(&call)
		tr.AcquireEnd(t.Context(), &call, about, locktrace.OutcomeAcquired, true, nil)
		if h.ReleaseStart(nil)(c.err, c.gone); got != c.want {
			t.Errorf("%v, gone %v: told of %v, want %v", c.err, c.gone, got, c.want)
		}
	}
}

func TestNoHoldTellsNothing(t *testing.T) {
	var none *report.Hold
	none.Left(locktrace.HoldReleased, 0, nil)
}

func TestOutcomeOf(t *testing.T) {
	both := func(a, b error) error { return fmt.Errorf("%w: %w", a, b) }
	for _, c := range []struct {
		err  error
		try  bool
		want locktrace.Outcome
	}{
		{nil, false, locktrace.OutcomeAcquired},
		{api.ErrClosed, false, locktrace.OutcomeClosed},
		{both(api.ErrNotAcquired, api.ErrDeadlock), false, locktrace.OutcomeDeadlock},
		{both(context.Canceled, api.ErrUnavailable), false, locktrace.OutcomeUnavailable},
		{both(api.ErrNotAcquired, context.Canceled), false, locktrace.OutcomeCancelled},
		{both(api.ErrNotAcquired, context.DeadlineExceeded), true, locktrace.OutcomeTimedOut},
		{api.ErrNotAcquired, true, locktrace.OutcomeRefused},
		{api.ErrNotAcquired, false, locktrace.OutcomeTimedOut},
		{api.ErrLost, false, locktrace.OutcomeFailed},
	} {
		if got := report.OutcomeOf(c.err, c.try); got != c.want {
			t.Errorf("%v, try %v: %s, want %s", c.err, c.try, got, c.want)
		}
	}
}
