package main

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// BenchmarkAlone is one goroutine that takes a lock and gives it back, of rlock, fairlock and
// redsync, in turns: their rates, and the server's processor time for each round.
func BenchmarkAlone(b *testing.B) {
	s := redistest.Real(b)
	base, err := benchkit.NewBase(s.Addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(base.Close)
	rate, cpu := map[string]float64{}, map[string]float64{}
	for b.Loop() {
		for _, name := range []string{"rlock", "redsync", "fairlock"} {
			k, _ := benchkit.Find(compared(), name)
			c, err := base.Measure(context.Background(), k, s.Addr, benchkit.Alone, 400*time.Millisecond)
			if err != nil {
				b.Fatal(err)
			}
			if c.Rate() > rate[name] {
				rate[name] = c.Rate()
			}
			if cpu[name] == 0 || c.CPU < cpu[name] {
				cpu[name] = c.CPU
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for name := range rate {
		b.ReportMetric(rate[name], name+"/s")
		b.ReportMetric(cpu[name], name+"-server-µs")
	}
}

// Every goal names a benchmark and units that there are.
func TestGoalsAreMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, -short: builds and runs benchmarks")
	}
	redistest.Real(t) // skips where there is none
	was := suites
	defer func() { suites = was }()
	suites = nil
	for _, s := range was {
		s.benchtime = "1x"
		suites = append(suites, s)
	}
	h := newHost()
	t.Cleanup(h.end)
	var r Report
	r.measureGoals(h, 1)
	if len(r.Goals) != len(goals) || len(r.Notes) > 0 {
		t.Errorf("%d goals, notes %q", len(r.Goals), r.Notes)
	}
	for _, m := range r.Goals {
		if math.IsNaN(m.Value) || m.Value <= 0 {
			t.Errorf("%s: %v", m.what, m.Value)
		}
	}
}

// The best of several slices counts, of both figures of a ratio; what was not measured is no figure.
func TestBestOfTheSlices(t *testing.T) {
	f := figures{}
	f.read([]byte("goos: linux\nBenchmarkAlone-2 \t 1\t 100 rlock/s\t 40 rlock-server-µs\t 50 redsync/s\n"))
	f.read([]byte("BenchmarkAlone-2 \t 1\t 90 rlock/s\t 44 rlock-server-µs\t 80 redsync/s\t 0.5e1 x\n"))
	f.read([]byte("BenchmarkInsideRedis/semaphore-another-out \t 1\t 9 ours-µs\t 8 redisson-µs\n--- BENCH: x\n"))
	var all []Measured
	for _, c := range []struct {
		g    goal
		want float64
	}{
		{goal{"rate", 1.5, false, aloneSuite, "", "rlock/s", "redsync/s"}, 1.25},
		{goal{"cost", 41, true, aloneSuite, "", "rlock-server-µs", ""}, 40},
		{goal{"inside", 1.1, true, insideSuite, "semaphore-another-out", "ours-µs", "redisson-µs"}, 1.125},
		{goal{"none", 1, true, ownSuite, "", "x-ceiling", ""}, math.NaN()},
	} {
		got := f.of(c.g)
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v, want %v", c.g.what, got, c.want)
		}
		all = append(all, Measured{c.g, got})
	}
	text := goalTable(all)
	for _, want := range []string{
		"| rate | ≥ 1.5 | 1.25, missed | `cd bench && go test -run '^$' -bench 'Alone' -count 5 .` |",
		"| cost | ≤ 41 | **40.00** |", "| inside | ≤ 1.1 | 1.12, missed | `go test -run", "| none | ≤ 1 | – |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
}
