package torture_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"relock/torture"
	"relock/torture/servers"
	"relock/torture/worker"
)

func TestMain(m *testing.M) {
	worker.Child()
	os.Exit(m.Run())
}

// shortRun is for how long each topology is tortured without RELOCK_TORTURE_DURATION.
const shortRun = 12 * time.Second

// What all rounds have.
const (
	calm       = 4 * time.Second
	workers    = 6
	goroutines = 4
)

// What all rounds with a crowd have.
const (
	crowd        = 64
	crowdWorkers = 12
)

// TestTorture runs rounds on each topology, with forced loss of data in every other round of a
// long run, and in none of a short one. See the Makefile for how to make it long.
func TestTorture(t *testing.T) {
	seed := setting(t, "RELOCK_TORTURE_SEED", uint64(time.Now().UnixNano())%1_000_000_000, func(s string) (uint64, error) {
		return strconv.ParseUint(s, 10, 64)
	})
	duration := setting(t, "RELOCK_TORTURE_DURATION", 0, time.ParseDuration)
	topologies := servers.Topologies
	if one := os.Getenv("RELOCK_TORTURE_TOPOLOGY"); one != "" && one != "all" {
		topologies = []string{one}
	}
	t.Logf("seed %d; again with: make torture SEED=%d", seed, seed)
	report := torture.NewReport()
	defer func() { t.Logf("seed %d\n%v", seed, report) }()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, topology := range topologies {
		t.Run(topology, func(t *testing.T) {
			set := servers.Start(t, topology)
			until := time.Now().Add(duration / time.Duration(len(topologies)))
			for i := 0; i == 0 || time.Now().Before(until); i++ {
				for _, p := range plans(topology, rnd, duration > 0) {
					if duration > 0 {
						p.Chaos, p.Loss = 30*time.Second, i%2 == 1
						p.Default = p.Crowd > 0 && i%4 >= 2
						p.Ordinary = p.Ordinary && !p.Loss // a node that was killed comes back with sharded ones
					}
					run(t, report, set, p)
				}
			}
		})
	}
}

// plans are a round with all kinds of locks and one with a crowd, or the one that
// RELOCK_TORTURE_ROUNDS names: mixed or crowd. A crowd is left out of several servers, whose quorums have
// no line, and of a short run on Sentinel, where a master does not fail in it.
func plans(topology string, rnd *rand.Rand, long bool) (all []torture.Plan) {
	only := os.Getenv("RELOCK_TORTURE_ROUNDS")
	if p := plan(topology, rnd.Uint64N(1_000_000_000)); only != "crowd" {
		all = append(all, p)
	}
	p := crowdPlan(topology, rnd.Uint64N(1_000_000_000))
	if only != "mixed" && topology != servers.Several && (long || topology != servers.Sentinel) {
		all = append(all, p)
	}
	return all
}

func plan(topology string, seed uint64) torture.Plan {
	return torture.Plan{Topology: topology, Seed: seed, Chaos: shortRun, Calm: calm, Workers: workers, Each: goroutines}
}

func crowdPlan(topology string, seed uint64) torture.Plan {
	return torture.Plan{
		Topology: topology, Seed: seed, Chaos: shortRun, Workers: crowdWorkers, Crowd: crowd,
		Ordinary: topology == servers.Cluster && seed%2 == 0,
	}
}

// run runs a round and fails the test for what it finds.
func run(t *testing.T, report *torture.Report, set *servers.Set, p torture.Plan) {
	t.Helper()
	began := time.Now()
	o := torture.Run(t, set, p)
	report.Add(o)
	bad := 0
	for _, f := range o.Fails {
		bad++
		t.Errorf("%s", f)
	}
	for _, v := range o.Result.Violations {
		if v.Tolerated {
			t.Logf("%v", v)
			continue
		}
		if bad++; bad <= 20 {
			t.Errorf("%v", v)
		}
	}
	t.Logf("%v: %d sections, %d faults, %d violations, %v", p, o.Result.Counts["sections"], len(o.Faults), bad, time.Since(began).Round(100*time.Millisecond))
}

// setting returns the value of an environment variable, or a default.
func setting[T any](t *testing.T, name string, without T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return without
	}
	v, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}
