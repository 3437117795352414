package torture

import (
	"time"

	"relock/torture/servers"
	"relock/torture/worker"
)

// rushLease is short, so that what a killed worker held stands in the way for a moment only.
const rushLease = 2 * time.Second

// rushed are the locks of a round in a rush: all that have a model in package history. Half of them are at
// home in one worker, which passes them on in memory more often than all other locks together.
var rushed = []worker.Lock{
	{Kind: worker.Mutex, Name: "plain"},
	{Kind: worker.Fenced, Name: "fenced"},
	{Kind: worker.Fair, Name: "fair"},
	{Kind: worker.FairToken, Name: "fair-fenced"},
	{Kind: worker.RW, Name: "rw"},
	{Kind: worker.Semaphore, Name: "permits", Limit: 3},
	{Kind: worker.Mutex, Name: "plain-{1}", Home: 1},
	{Kind: worker.Fenced, Name: "fenced-{2}", Home: 2},
	{Kind: worker.Fenced, Name: "kept-fenced-{3}", Kept: true, Home: 3},
	{Kind: worker.RW, Name: "rw-{4}", Home: 4},
	{Kind: worker.Mutex, Name: "plain-{5}", Home: 5},
	{Kind: worker.Semaphore, Name: "permits-{6}", Limit: 3, Home: 6},
}

// handOvers bounds those in memory of the workers in a rush, in their order: some sessions pass a lock on
// to others each time, some after a few, some when their time slice is over.
var handOvers = []int{0, 0, 0, 16, 0, -1}

// replicas is how many must acknowledge each acquisition.
func (p Plan) replicas() int {
	if p.Topology == servers.Replicas {
		return 1
	}
	return 0
}

// handOver is how many hand-overs in memory in a row the worker i makes: see rlock.Config.
func (p Plan) handOver(i int) int {
	switch {
	case p.Rush:
		return handOvers[i%len(handOvers)]
	case (p.Seed/2+uint64(i))%4 == 0:
		return -1
	}
	return 0
}

// lanes is how many workers, or their networks, may fail at the same time, apart from Redis. In a rush few
// fail at a time: a lock that a victim holds is passed on by nobody for a lease.
func (p Plan) lanes() int {
	if p.Rush {
		return 1
	}
	return 3
}

// quietOfWorkers is the longest time without a fault of a worker in one lane.
func (p Plan) quietOfWorkers() time.Duration {
	if p.Rush {
		return 2 * time.Second
	}
	return time.Second
}
