package torture_test

import (
	"os"
	"testing"
	"time"

	"relock/torture"
	"relock/torture/servers"
)

// failedOnce are rounds that failed once. A seed decides what the nemeses and the workers
// choose, not what they do at the same time, so a round that passes proves little alone.
var failedOnce = []struct {
	why string
	torture.Plan
}{
	{
		"Unlock says ErrLost if the release is refused until the lease is over: the check blamed the lock",
		torture.Plan{Topology: servers.Cluster, Seed: 206812876, Chaos: 30 * time.Second},
	},
	{
		"the same, of permits and of readers",
		torture.Plan{Topology: servers.Cluster, Seed: 402449718, Chaos: 30 * time.Second},
	},
	{
		"the line of a plain lock stays behind when all sessions have closed",
		torture.Plan{Topology: servers.Standalone, Seed: 852151339, Chaos: 30 * time.Second, Crowd: crowd},
	},
}

// TestTortureSeedsThatFailed runs them all again. It takes a minute for each, so it runs only
// when it is asked for.
func TestTortureSeedsThatFailed(t *testing.T) {
	if os.Getenv("RELOCK_TORTURE_SEEDS") != "1" {
		t.Skip("RELOCK_TORTURE_SEEDS=1 runs the seeds that failed once, a minute for each")
	}
	report := torture.NewReport()
	for _, f := range failedOnce {
		t.Run(f.why, func(t *testing.T) {
			p := f.Plan
			p.Calm, p.Workers, p.Each = calm, workers, goroutines
			if p.Crowd > 0 {
				p.Workers = crowdWorkers
			}
			report.Add(run(t, p, servers.Start(t, p.Topology)))
		})
	}
	t.Logf("%v", report)
}
