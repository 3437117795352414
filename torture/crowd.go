package torture

import (
	"math/rand/v2"
	"time"

	"relock/rlock"
	"relock/torture/check"
	"relock/torture/nemesis"
	"relock/torture/servers"
)

// What the sessions of a crowd are configured with. All is short, so that a fault's cost is over soon and
// a short round has room for a few.
const (
	crowdLease     = 2 * time.Second
	crowdPollFloor = 500 * time.Millisecond
)

// queueLease is that of the sessions.
func (p Plan) queueLease() time.Duration {
	if p.Default {
		return rlock.DefaultQueueLease
	}
	return 2 * time.Second
}

// pollFloor is that of the sessions.
func (p Plan) pollFloor() time.Duration {
	switch {
	case p.Topology == servers.Several: // others look soon whether the votes that are left are a majority
		return 200 * time.Millisecond
	case p.Rush, p.Crowd > 0 && !p.Default:
		return crowdPollFloor
	}
	return rlock.DefaultPollFloor
}

// sessions returns how many the worker i has. In a crowd two thirds of the workers have one, so that one
// session alone can vanish, and the others share the rest, so that many vanish together.
func (p Plan) sessions(i int) int {
	if p.Crowd == 0 {
		return 1
	}
	single := p.Workers * 2 / 3
	if i < single {
		return 1
	}
	rest, shares := p.Crowd-single, p.Workers-single
	n := rest / shares
	if i-single < rest%shares {
		n++
	}
	return n
}

// costs are what a fault costs those that wait: a session that has vanished one grant's lease, all that
// vanish together one queue lease, and then the others a look.
func (p Plan) costs() *check.Costs {
	if p.Crowd == 0 {
		return nil
	}
	grant := p.queueLease() / 4 // guarantees.md, Granted holds
	return &check.Costs{Grant: grant, Together: p.queueLease(), Look: p.pollFloor()}
}

// quiet is for how long nothing may fail after a fault, so that a wait which has no end shows: for as
// long as it costs those that wait if all their like have vanished, and for what needs no cause.
func (p Plan) quiet() time.Duration {
	return p.queueLease() + p.pollFloor() + check.Patience
}

// calmFor is for how long the workers go on after the last fault.
func (p Plan) calmFor() time.Duration {
	if p.Crowd > 0 {
		return p.quiet()
	}
	return p.Calm
}

// crowd returns a nemesis that makes one fault at a time.
func (r *round) crowd(redis *nemesis.Redis) *nemesis.Crowd {
	w := &nemesis.Workers{
		Processes: map[int]nemesis.Process{},
		Journal:   r.journal, Rnd: rand.New(rand.NewPCG(r.Seed, 1)),
	}
	for i, p := range r.procs {
		w.Processes[i] = p
	}
	return &nemesis.Crowd{Workers: w, Redis: redis, Quiet: r.quiet()}
}
