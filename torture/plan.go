package torture

import (
	"fmt"
	"slices"
	"time"

	"relock/torture/servers"
	"relock/torture/worker"
)

// Plan is one round.
type Plan struct {
	Topology string
	Seed     uint64
	Chaos    time.Duration // for how long things fail
	Calm     time.Duration // for how long the workers go on afterwards
	Loss     bool          // faults that lose data are among them
	Workers  int
	Each     int  // goroutines of a worker
	Rush     bool // callers pass locks on as fast as that goes, and their histories are checked
	Crowd    int  // how many sessions stand in the line of each lock; 0: workers take all kinds of locks
	Default  bool // with the default times of a line, which are longer than those of a short round
	Ordinary bool // on a Cluster that has no sharded messages
}

func (p Plan) String() string {
	text := fmt.Sprintf("%s, seed %d, %v of faults, forced loss of data: %v", p.Topology, p.Seed, p.Chaos, p.Loss)
	if p.Crowd > 0 {
		text += fmt.Sprintf(", a crowd of %d, default times: %v, ordinary messages: %v", p.Crowd, p.Default, p.Ordinary)
	}
	if p.Rush {
		text += ", in a rush"
	}
	return text
}

// The bounds of a round, lenient towards a busy machine.
const (
	startWithin = 90 * time.Second // a worker that is started amid a fault may try for a minute
	probeWait   = 40 * time.Second // the longest lease, and as much again for the queue
	endWithin   = 60 * time.Second
)

// leases of the sessions, in the order of the workers. A lock of a dead worker stands for as
// long.
var leases = []time.Duration{2 * time.Second, 2 * time.Second, 3 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second}

// quorumLease is that of all sessions if they are of several servers: it must be the same. A
// server gives no votes for as long after a restart.
const quorumLease = 2 * time.Second

// leases returns those of the sessions, in the order of the workers.
func (p Plan) leases() []time.Duration {
	switch {
	case p.Topology == servers.Several:
		return []time.Duration{quorumLease}
	case p.Crowd > 0:
		return []time.Duration{crowdLease}
	case p.Rush:
		return []time.Duration{rushLease}
	}
	return leases
}

// probeWait bounds an attempt after the faults. Callers of a quorum have no queue: each has to be
// the fastest once.
func (p Plan) probeWait() time.Duration {
	if p.Topology == servers.Several {
		return 2 * probeWait
	}
	return probeWait
}

// locks are few, so that workers meet. Those that are no quorums are on the first of several
// servers.
func (p Plan) locks() []worker.Lock {
	switch {
	case p.Rush:
		return rushed
	case p.Crowd > 0:
		return []worker.Lock{{Kind: worker.Mutex, Name: "plain"}, {Kind: worker.Fair, Name: "fair"}}
	case p.Topology == servers.Several:
		return []worker.Lock{
			{Kind: worker.Quorum, Name: "quorum"},
			{Kind: worker.Quorum, Name: "quorum-2"},
			{Kind: worker.Mutex, Name: "plain"},
			{Kind: worker.Fenced, Name: "fenced"},
			{Kind: worker.Quorum, Name: "long-quorum", Long: true},
		}
	}
	return []worker.Lock{
		{Kind: worker.Mutex, Name: "plain"},
		{Kind: worker.Mutex, Name: "plain-{tag}"},
		{Kind: worker.Mutex, Name: "kept", Kept: true},
		{Kind: worker.Fenced, Name: "kept-fenced", Kept: true},
		{Kind: worker.RW, Name: "kept-rw", Kept: true},
		{Kind: worker.Fenced, Name: "fenced"},
		{Kind: worker.Fair, Name: "fair"},
		{Kind: worker.FairToken, Name: "fair-fenced"},
		{Kind: worker.RW, Name: "rw"},
		{Kind: worker.Semaphore, Name: "permits", Limit: 3},
		{Kind: worker.Counter, Name: "counter", Limit: 20},
		{Kind: worker.Mutex, Name: "long", Long: true},
		{Kind: worker.Fenced, Name: "long-fenced", Long: true},
		{Kind: worker.RW, Name: "long-rw", Long: true},
	}
}

func (p Plan) maxLease() time.Duration { return slices.Max(p.leases()) }
