package torture_test

import (
	"math/rand/v2"
	"os"
	"slices"
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
const shortRun = 9 * time.Second

// shortRush is the same for a round in a rush, which has some thousand acquisitions a second.
const shortRush = 5 * time.Second

// What all rounds have.
const (
	calm       = 4 * time.Second
	workers    = 6
	goroutines = 4
)

// rushers is how many callers a worker in a rush has for each lock.
const rushers = 3

// What all rounds with a crowd have.
const (
	crowd        = 64
	crowdWorkers = 12
)

// TestTorture runs rounds on each topology, with forced loss of data in every other round of a
// long run, and in none of a short one. See the Makefile for how to make it long.
func TestTorture(t *testing.T) {
	seed := setting(t, "RELOCK_TORTURE_SEED", newSeed(), parseSeed)
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
					report.Add(run(t, p, set))
				}
			}
		})
	}
}

// plans are a round with all kinds of locks, one in a rush and one with a crowd, or the one that
// RELOCK_TORTURE_ROUNDS names: mixed, rush or crowd. Several servers have mixed rounds alone, since quorums have
// no line. A short run leaves out what differs least from the rest.
func plans(topology string, rnd *rand.Rand, long bool) (all []torture.Plan) {
	only := os.Getenv("RELOCK_TORTURE_ROUNDS")
	seeds := []uint64{rnd.Uint64N(1_000_000_000), rnd.Uint64N(1_000_000_000), rnd.Uint64N(1_000_000_000)}
	wanted := func(rounds string, short ...string) bool {
		return (only == "" || only == rounds) && (only != "" || long || slices.Contains(short, topology))
	}
	if wanted("mixed", servers.Standalone, servers.Sentinel, servers.Cluster, servers.Several) {
		all = append(all, plan(topology, seeds[0]))
	}
	if topology == servers.Several {
		return all
	}
	if wanted("rush", servers.Standalone, servers.Replicas) {
		all = append(all, rushPlan(topology, seeds[1]))
	}
	if wanted("crowd", servers.Standalone, servers.Cluster) {
		all = append(all, crowdPlan(topology, seeds[2]))
	}
	return all
}

func plan(topology string, seed uint64) torture.Plan {
	return torture.Plan{Topology: topology, Seed: seed, Chaos: shortRun, Calm: calm, Workers: workers, Each: goroutines}
}

func rushPlan(topology string, seed uint64) torture.Plan {
	return torture.Plan{
		Topology: topology, Seed: seed, Chaos: shortRush, Calm: time.Second, Workers: workers, Each: rushers, Rush: true,
	}
}

func crowdPlan(topology string, seed uint64) torture.Plan {
	return torture.Plan{
		Topology: topology, Seed: seed, Chaos: shortRun, Workers: crowdWorkers, Crowd: crowd,
		Ordinary: topology == servers.Cluster && seed%2 == 0,
	}
}

// run runs a round and fails the test for what it finds.
func run(t *testing.T, p torture.Plan, set *servers.Set) *torture.Outcome {
	t.Helper()
	began := time.Now()
	o := torture.Run(t, set, p)
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
	return o
}

func newSeed() uint64 { return uint64(time.Now().UnixNano()) % 1_000_000_000 }

func parseSeed(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }

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
