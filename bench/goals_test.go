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

// BenchmarkAlone has one goroutine lock and unlock with each library, in short turns: the speed of a
// machine may change within a second, and must not decide which of them is the faster.
func BenchmarkAlone(b *testing.B) {
	s := redistest.Real(b)
	base, err := benchkit.NewBase(s.Addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(base.Close)
	const window = 200 * time.Millisecond
	names := []string{"rlock", "redsync", "fairlock"}
	rates, cpu := map[string]float64{}, map[string]float64{} // sums
	for b.Loop() {
		for _, name := range names {
			k, _ := benchkit.Find(compared(), name)
			c, err := base.Measure(context.Background(), k, s.Addr, benchkit.Alone, window)
			if err != nil {
				b.Fatal(err)
			}
			rates[name] += c.Rate()
			cpu[name] += c.CPU
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, name := range names {
		b.ReportMetric(rates[name]/float64(b.N), name+"/s")
		b.ReportMetric(cpu[name]/float64(b.N), name+"-server-µs")
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
	t.Setenv("RELOCK_SESSIONS_WINDOW", "500ms")
	h := newHost()
	t.Cleanup(h.end)
	var r Report
	r.measureGoals(h, 1)
	if len(r.Goals) != len(goals) || len(r.Notes) > 0 {
		t.Errorf("%d goals, notes %q", len(r.Goals), r.Notes)
	}
	for _, m := range r.Goals {
		if !(m.Best > 0 && m.Median > 0) {
			t.Errorf("%s: %v", m.what, m.Best)
		}
	}
}

// The best of several slices counts, and both figures of a ratio are of the same one; what was not
// measured is no figure.
func TestBestOfTheSlices(t *testing.T) {
	slices := []figures{{}, {}, {}}
	slices[0].read([]byte("goos: linux\nBenchmarkAlone-2 \t 1\t 100 rlock/s\t 40 rlock-server-µs\t 50 redsync/s\n"))
	slices[1].read([]byte("BenchmarkAlone-2 \t 1\t 90 rlock/s\t 44 rlock-server-µs\t 80 redsync/s\t 0.5e1 x\n"))
	slices[1].read([]byte("BenchmarkInsideRedis/semaphore-another-out \t 1\t 9 ours-µs\t 8 redisson-µs\n--- BENCH: x\n"))
	slices[2].read([]byte("BenchmarkAlone-2 \t 1\t 90 rlock/s\t 46 rlock-server-µs\t 60 redsync/s\n"))
	slices[2].read([]byte("BenchmarkInsideRedis/semaphore-another-out \t 1\t 9 ours-µs\n"))
	slices[2].read([]byte("BenchmarkSessions/rlock/n=4/section=0s-2 \t 1\t 400 acq/s\nBenchmarkSessions/rlock/n=512/section=0s-2 \t 1\t 300 acq/s\n"))
	var text []Measured
	for _, c := range []struct {
		g            goal
		best, median float64
	}{
		{goal{"rate", 2.5, false, aloneSuite, "", "rlock/s", "redsync/s"}, 2, 1.5},
		{goal{"cost", 41, true, aloneSuite, "", "rlock-server-µs", ""}, 40, 44},
		{goal{"inside", 1.1, true, insideSuite, "semaphore-another-out", "ours-µs", "redisson-µs"}, 1.125, 1.125},
		{goal{"of 4", 0.7, false, sessionsSuite, "rlock/n=512/section=0s", "acq/s", "Sessions/rlock/n=4/section=0s acq/s"}, 0.75, 0.75},
	} {
		got := c.g.judge(slices)
		if got.Best != c.best || got.Median != c.median {
			t.Errorf("%s: best %v, median %v; want %v, %v", c.g.what, got.Best, got.Median, c.best, c.median)
		}
		text = append(text, got)
	}
	none := goal{"none", 1, true, ownSuite, "", "x-ceiling", ""}.judge(slices)
	if !math.IsNaN(none.Best) || !math.IsNaN(none.Median) {
		t.Errorf("a goal that was not measured: %+v", none)
	}
	table := goalTable(append(text, none))
	for _, want := range []string{
		"| rate | ≥ 2.5 | 2.00, missed | 1.50 | `bench: Alone` |",
		"| cost | ≤ 41 | **40.00** | 44.00 |", "| inside | ≤ 1.1 | 1.12, missed | 1.12 | `InsideRedis` |", "| none | ≤ 1 | – | – |",
		`n=(4\|128\|512)$/section=0s`, // a bar would end the cell
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
}
