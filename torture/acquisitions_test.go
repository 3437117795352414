package torture_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/torture"
	"relock/torture/servers"
)

// rushFor is for how long things fail in one round of many.
const rushFor = 30 * time.Second

// reported is what the report calls the acquisitions that were checked.
const reported = "acquisitions in histories"

// beside are the deployments that are tortured at the same time: the first of each line, then the second.
var beside = [][]string{
	{servers.Standalone, servers.Sentinel},
	{servers.Replicas, servers.Cluster},
}

// many is a run of many rounds.
type many struct {
	seed  uint64
	want  int
	until time.Time
	began time.Time

	mu     sync.Mutex
	report *torture.Report
}

// TestAcquisitionsAmidFaults runs rounds in a rush until as many acquisitions were checked as it is told, or
// until its time is over. Each round has a seed of its own, and its histories are checked before the next
// one begins on the same line of deployments.
func TestAcquisitionsAmidFaults(t *testing.T) {
	m := &many{
		seed: setting(t, "RELOCK_TORTURE_SEED", newSeed(), parseSeed),
		want: setting(t, "RELOCK_TORTURE_ACQUISITIONS", 0, strconv.Atoi), began: time.Now(), report: torture.NewReport(),
	}
	if m.want == 0 {
		t.Skip("make histories ACQUISITIONS=10000000 runs rounds until as many were checked")
	}
	m.until = m.began.Add(setting(t, "RELOCK_TORTURE_DURATION", 24*time.Hour, time.ParseDuration))
	t.Cleanup(func() { t.Logf("%v", m) })
	for line, topologies := range beside {
		t.Run(strings.Join(topologies, ","), func(t *testing.T) {
			t.Parallel()
			m.rounds(t, topologies, rand.New(rand.NewPCG(m.seed, uint64(line))))
		})
	}
}

// rounds runs rounds on each of the deployments in turn. Every fourth one of a deployment has forced loss
// of data.
func (m *many) rounds(t *testing.T, topologies []string, rnd *rand.Rand) {
	sets := map[string]*servers.Set{}
	for i := 0; !m.over(); i++ {
		topology := topologies[i%len(topologies)]
		if sets[topology] == nil {
			sets[topology] = servers.Start(t, topology)
		}
		p := rushPlan(topology, rnd.Uint64N(1_000_000_000))
		p.Chaos, p.Loss = rushFor, i/len(topologies)%4 == 3
		o := run(t, p, sets[topology])
		m.add(t, o)
	}
}

func (m *many) over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report.Counts[reported] >= m.want || time.Now().After(m.until)
}

// add adds a round to the report, which is left where RELOCK_TORTURE_REPORT says, for a run that ends early.
func (m *many) add(t *testing.T, o *torture.Outcome) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report.Add(o)
	t.Logf("%d of %d acquisitions after %v", m.report.Counts[reported], m.want, time.Since(m.began).Round(time.Second))
	if path := os.Getenv("RELOCK_TORTURE_REPORT"); path != "" {
		if err := os.WriteFile(path, []byte(m.String()), 0o600); err != nil {
			t.Errorf("RELOCK_TORTURE_REPORT: %v", err)
		}
	}
}

func (m *many) String() string {
	return fmt.Sprintf("seed %d, %v\n%v", m.seed, time.Since(m.began).Round(time.Second), m.report)
}
