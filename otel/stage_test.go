package otel_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"relock/otel"
	"relock/relocktest"
	"relock/rlock"
)

// A stage is an embedded Redis, a session with the hooks, and what they have recorded. It stands in
// a bubble with a made-up clock, by which no wait and no lease is over because the machine was busy.
type stage struct {
	t      *testing.T
	redis  *relocktest.Redis
	ses    *rlock.Session
	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
	trace  *rlock.Trace
}

func newStage(t *testing.T, cfg rlock.Config, opts ...otel.Option) *stage {
	s := &stage{t: t, redis: relocktest.Start(t), reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	s.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	opts = append(opts, otel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(s.reader))), otel.WithTracerProvider(s.tracer))
	trace, err := otel.New(opts...)
	must(t, err)
	cfg.Trace, s.trace = trace, trace
	s.ses = s.redis.Session(t, cfg)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// numbers returns each counter and gauge with its attributes, and the count of each histogram,
// as far as they are not 0. The hooks that concern no call have run by then: the session runs them
// in a goroutine of its own.
func (s *stage) numbers() map[string]int64 {
	s.t.Helper()
	synctest.Wait()
	var rm metricdata.ResourceMetrics
	must(s.t, s.reader.Collect(context.Background(), &rm))
	all := map[string]int64{}
	add := func(name string, attrs attribute.Set, n int64) {
		if n != 0 {
			all[name+"{"+attrs.Encoded(attribute.DefaultEncoder())+"}"] += n
		}
	}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, int64(p.Count))
				}
			default:
				s.t.Errorf("%s is a %T", m.Name, d)
			}
		}
	}
	return all
}

// sum returns the sum over a histogram's seconds.
func (s *stage) sum(name string) (sum float64) {
	var rm metricdata.ResourceMetrics
	must(s.t, s.reader.Collect(context.Background(), &rm))
	for _, m := range rm.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
			for _, p := range h.DataPoints {
				sum += p.Sum
			}
		}
	}
	return sum
}

// is checks all numbers, but those of the metrics in except.
func (s *stage) is(want map[string]int64, except ...string) {
	s.t.Helper()
	var lines []string
	got := s.numbers()
	for k, n := range got {
		skip := false
		for _, e := range except {
			skip = skip || strings.HasPrefix(k, e+"{")
		}
		if !skip && want[k] != n {
			lines = append(lines, fmt.Sprintf("%s is %d, want %d", k, n, want[k]))
		}
	}
	for k, n := range want {
		if got[k] != n && got[k] == 0 {
			lines = append(lines, fmt.Sprintf("%s is 0, want %d", k, n))
		}
	}
	sort.Strings(lines)
	for _, l := range lines {
		s.t.Error(l)
	}
}

// until waits for something that happens in the background.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

const mutex = "relock.lock.kind=mutex"
