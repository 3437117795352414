package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// Java processes take part in a scene like ours: rounds, waits, the server's time, and the gate.
func TestRedissonIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, -short: starts four Java processes")
	}
	s := redistest.Real(t)
	was := javaWarm
	defer func() { javaWarm = was }()
	javaWarm = 200 * time.Millisecond
	h := newHost()
	t.Cleanup(h.end)
	j, err := startJVMs(h, s.Addr)
	if errors.Is(err, errLeftOut) {
		t.Skipf("SKIPPED, %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	base, err := benchkit.NewBase(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	const window = 400 * time.Millisecond
	for _, sc := range []benchkit.Scene{
		{Name: "own", Workers: 3, OwnKeys: true}, {Name: "four", Workers: 2, Processes: 4, Work: time.Millisecond},
		benchkit.InSessions(6),
	} {
		c, err := j.measure(t.Context(), base, sc, window)
		if err != nil {
			t.Fatal(err)
		}
		if n := sc.Workers * max(1, sc.Processes); len(c.PerWorker) != n || len(c.Longest) != n || len(c.Waits) < c.Ops {
			t.Errorf("%s: %d threads, %d longest waits; %d waits of %d rounds", sc.Name, len(c.PerWorker), len(c.Longest), len(c.Waits), c.Ops)
		}
		if c.Ops == 0 || c.Commands < 3 || c.CPU < 1 || c.Elapsed != window {
			t.Errorf("%s: %d rounds in %v, each with %.2f commands and %.2f µs of the server", sc.Name, c.Ops, c.Elapsed, c.Commands, c.CPU)
		}
	}
	// A session is a client of its own, with connections of its own, and goes when it is not needed any more.
	if n := connections(t, s, j.all[0], 6) - connections(t, s, j.all[0], 1); n < 5*2 {
		t.Errorf("six sessions have %d connections more than one", n)
	}
	// The gate in memory that the processes share lets one in at a time.
	res, err := j.run(benchkit.Scene{Workers: 2, Processes: 4, Work: 5 * time.Millisecond}, window, nil, nil)
	if err != nil || res.Violations != 0 {
		t.Errorf("one lock: %d violations, %v", res.Violations, err)
	}
	took, err := j.handOver(3)
	if err != nil || len(took) != 3 || slices.Min(took) <= 0 {
		t.Errorf("hand-over: %v, %v", took, err)
	}
}

// connections returns how many the server has while a process has so many clients.
func connections(t *testing.T, s *redistest.Server, p *jvm, clients int) (n int) {
	t.Helper()
	if err := p.open(clients); err != nil {
		t.Fatal(err)
	}
	list, err := s.Do(t, "CLIENT", "LIST").ToString()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n")
}

// A report that is no report is an error, and one of a thread that was never let in is none.
func TestRoundsOfJava(t *testing.T) {
	var res benchkit.Result
	if err := addRounds(&res, "2:10,30;0:", time.Second); err != nil {
		t.Fatal(err)
	}
	if res.Ops != 2 || !slices.Equal(res.PerWorker, []int{2, 0}) || res.Elapsed != time.Second ||
		!slices.Equal(res.Longest, []time.Duration{30 * time.Microsecond, 0}) || len(res.Waits) != 2 {
		t.Errorf("%+v", res)
	}
	for _, bad := range []string{"", "x:1", "1:2,x"} {
		if err := addRounds(&res, bad, time.Second); err == nil {
			t.Errorf("%q is a report", bad)
		}
	}
}
