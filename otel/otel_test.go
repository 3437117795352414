package otel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"relock/otel"
	"relock/rlock"
)

func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{}, otel.WithLockName(func(string) string { return "some" }))
		ctx, root := s.tracer.Tracer("test").Start(t.Context(), "request")
		_, h, err := rlock.New(s.ses, "job").Lock(ctx)
		must(t, err)
		_, _, err = rlock.New(s.ses, "job").TryLock(ctx)
		if !errors.Is(err, rlock.ErrNotAcquired) {
			t.Fatal(err)
		}
		must(t, h.Unlock())
		root.End()
		var got []string
		for _, span := range s.spans.Ended() {
			if span.Name() != "request" && span.Parent().SpanID() != root.SpanContext().SpanID() {
				t.Errorf("%s is no child of the request", span.Name())
			}
			line := span.Name() + " " + span.Status().Code.String()
			for _, a := range span.Attributes() {
				line += " " + string(a.Key) + "=" + a.Value.String()
			}
			got = append(got, line)
		}
		const about = " relock.lock.kind=mutex relock.lock.name=some"
		want := []string{
			"relock acquire Unset" + about + " relock.acquire.outcome=acquired relock.nested=false relock.acquire.grant=redis",
			"relock acquire Unset" + about + " relock.acquire.outcome=refused relock.nested=false",
			"relock release Unset" + about,
			"request Unset",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// Backends tell by the scope which version of the hooks has recorded what.
func TestScopeHasTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{})
		must(t, rlock.New(s.ses, "x").Do(t.Context(), func(context.Context) error { return nil }))
		synctest.Wait()
		var rm metricdata.ResourceMetrics
		must(t, s.reader.Collect(t.Context(), &rm))
		if scope := rm.ScopeMetrics[0].Scope; scope.Name != "relock/otel" || scope.Version != rlock.Version {
			t.Errorf("the meter is %s %q", scope.Name, scope.Version)
		}
		for _, span := range s.spans.Ended() {
			if scope := span.InstrumentationScope(); scope.Name != "relock/otel" || scope.Version != rlock.Version {
				t.Errorf("the tracer is %s %q", scope.Name, scope.Version)
			}
		}
		if len(s.spans.Ended()) == 0 {
			t.Error("no span has ended")
		}
	})
}

// The names of locks are recorded only as the user's function says.
func TestLockName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		use := func(s *stage) (names int) {
			for _, name := range []string{"order:1", "order:2", "other"} {
				_, h, err := rlock.New(s.ses, name).Lock(t.Context())
				must(t, err)
				must(t, h.Unlock())
			}
			for k := range s.numbers() {
				if strings.Contains(k, "relock.lock.name") {
					names++
					if !strings.Contains(k, "relock.lock.name=order") {
						t.Errorf("the name is not the one given: %s", k)
					}
				}
			}
			return names
		}
		if n := use(newStage(t, rlock.Config{})); n != 0 {
			t.Errorf("%d metrics have a name although none was asked for", n)
		}
		byClass := otel.WithLockName(func(name string) string {
			class, _, numbered := strings.Cut(name, ":")
			if !numbered {
				return ""
			}
			return class
		})
		if n := use(newStage(t, rlock.Config{}, byClass)); n == 0 {
			t.Error("no metric has a name")
		}
	})
}

func TestBadOptions(t *testing.T) {
	for want, opt := range map[string]otel.Option{
		"option is nil":     nil,
		"WithMeterProvider": otel.WithMeterProvider(nil), "WithTracerProvider": otel.WithTracerProvider(nil),
		"WithLockName": otel.WithLockName(nil),
	} {
		if trace, err := otel.New(opt); err == nil || trace != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want an error about %s", err, want)
		}
	}
}
