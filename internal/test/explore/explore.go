package explore

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A Report is what an exploration has come to.
type Report struct {
	Name      string
	States    int // that are distinct
	Depth     int // steps that lead to the farthest of them, by the shortest way
	Exhausted bool
	Faults    int
	Calm      [4]calmCost // the most that a calm run from a state needs, by how many faults have happened
	Time      time.Duration
	Wrong     string // what was found, "" if nothing was
	Story     string // how that comes about
}

// String is the report in one line.
func (r Report) String() string {
	how := "not exhausted"
	if r.Exhausted {
		how = "exhausted"
	}
	return fmt.Sprintf("%-16s %d faults %9d states, depth %3d, %-13s %8v, calm runs: %v", r.Name, r.Faults, r.States, r.Depth, how,
		r.Time.Round(10*time.Millisecond), r.Calm[:r.Faults+1])
}

// An explorer remembers the states that were reached, breadth first. Their numbers are in the order in which
// they were found, which does not depend on how many processors there are.
type explorer struct {
	set     *Setup
	workers []*worker
	number  map[key]int32
	parent  []int32
	via     []step
	calm    []int32 // the state that the calm run leads to; none: it is at its end; unknown: it was not looked at
	cost    []calmCost
	used    []int8 // faults
	queue   []*world
	first   int // the number of the first in the queue
}

const (
	none    int32 = -1
	unknown int32 = -2
)

// A worker expands states. Each has an interpreter of its own.
type worker struct {
	set   *Setup
	runs  *runs
	h     *hasher
	steps []step
	twice map[key]bool // what was run twice on such a Redis
}

func newWorker(set *Setup, seeds [2]maphash.Seed) *worker {
	return &worker{set: set, runs: newRuns(), h: &hasher{seeds: seeds, alias: set.alias}, twice: make(map[key]bool)}
}

func (wo *worker) close() { wo.runs.in.Close() }

// firstOfItsKind reports whether a command has not run on such a Redis before, but for the times.
func (wo *worker) firstOfItsKind(before, w *world, c *command) bool {
	k := wo.h.ofRun(before, w, c)
	first := !wo.twice[k]
	wo.twice[k] = true
	return first
}

// A successor is what a step leads to.
type successor struct {
	step
	key   key
	world *world // nil: its key is known
	calm  bool   // the calm run may take it
	needs calmCost
	wrong string
}

// chunk is how many states are expanded at a time.
const chunk = 256

// Explore explores a setup until so many states are known, or for a time.
func (set *Setup) Explore(most int, limit time.Duration) (r Report) {
	began := time.Now()
	x := &explorer{set: set, number: make(map[key]int32)}
	seeds := newSeeds()
	for range runtime.GOMAXPROCS(0) {
		x.workers = append(x.workers, newWorker(set, seeds))
		defer x.workers[len(x.workers)-1].close()
	}
	r.Name, r.Faults = set.Name, int(set.faults)
	w := set.begin()
	x.add(&successor{key: x.workers[0].h.of(w), world: w}, none)
	levelEnd := 1
	for len(x.queue) > 0 && len(x.parent) < most && time.Since(began) < limit && r.Wrong == "" {
		if x.first == levelEnd {
			levelEnd = len(x.parent)
			r.Depth++
		}
		n := min(chunk, len(x.queue), levelEnd-x.first)
		found := x.expandAll(x.queue[:n])
		at := x.first
		clear(x.queue[:n])
		x.queue, x.first = x.queue[n:], x.first+n
		for i, all := range found {
			if r.Wrong, r.Story = x.merge(int32(at+i), all); r.Wrong != "" {
				break
			}
		}
	}
	r.States, r.Exhausted = len(x.parent), len(x.queue) == 0
	if r.Wrong == "" {
		r.Wrong, r.Story = x.liveness(&r)
	}
	r.Time = time.Since(began)
	return r
}

// expandAll takes each step that is possible in each of the states.
func (x *explorer) expandAll(states []*world) [][]successor {
	found := make([][]successor, len(states))
	x.inParallel(len(states), func(wo *worker, i int) { found[i] = wo.expand(states[i], x.number) })
	return found
}

// inParallel calls fn for 0 to n - 1, with the worker that does it.
func (x *explorer) inParallel(n int, fn func(wo *worker, i int)) {
	var all sync.WaitGroup
	for first, wo := range x.workers {
		all.Go(func() {
			for i := first; i < n; i += len(x.workers) {
				fn(wo, i)
			}
		})
	}
	all.Wait()
}

// merge gives numbers to what was found behind a state. It returns what is wrong there, and the story of it.
func (x *explorer) merge(at int32, found []successor) (wrong, story string) {
	x.calm[at] = none
	for i := range found {
		s := &found[i]
		if s.wrong != "" {
			steps := x.path(at)
			if s.world != nil {
				steps = append(steps, s.step)
			}
			return s.wrong, x.set.story(steps, x.workers[0])
		}
		n := x.add(s, at)
		if s.calm && x.calm[at] == none {
			x.calm[at], x.cost[at] = n, s.needs
		}
	}
	return "", ""
}

// add gives a state a number, if it is new.
func (x *explorer) add(s *successor, from int32) int32 {
	if n, ok := x.number[s.key]; ok {
		return n
	}
	n := int32(len(x.parent))
	x.number[s.key] = n
	x.parent, x.via = append(x.parent, from), append(x.via, s.step)
	x.calm, x.cost, x.used = append(x.calm, unknown), append(x.cost, calmCost{}), append(x.used, x.set.faults-s.world.faults)
	x.queue = append(x.queue, s.world)
	return n
}

// expand takes each step that is possible in a state. known is only read.
func (wo *worker) expand(w *world, known map[key]int32) (found []successor) {
	wo.steps = w.steps(wo.steps[:0])
	finished := w.finished()
	if len(wo.steps) == 0 && !finished {
		return []successor{{wrong: "nothing can happen any more, and not all have done what they were to do"}}
	}
	found = make([]successor, 0, len(wo.steps))
	for _, s := range wo.steps {
		next := w.copy()
		next.take(s, wo)
		f := successor{step: s, world: next, wrong: next.check(), needs: s.calmCost(w, next)}
		if f.wrong == "" {
			f.key = wo.h.of(next)
			if _, ok := known[f.key]; ok {
				f.world = nil
			}
		}
		f.calm = s.cost == 0 && !finished
		found = append(found, f)
	}
	return found
}

// path returns the steps that lead to a state.
func (x *explorer) path(n int32) (steps []step) {
	for ; x.parent[n] != none; n = x.parent[n] {
		steps = append(steps, x.via[n])
	}
	slices.Reverse(steps)
	return steps
}

// finished reports whether all that live have done what they were to do.
func (w *world) finished() bool {
	for i, c := range w.clients {
		wi := &w.wires[i]
		if len(wi.cmds) > 0 {
			return false
		}
		if wi.state == dead || wi.state == vanished {
			continue
		}
		if wi.state == stopped || !c.over() || len(wi.answers)+len(wi.parcels) > 0 {
			return false
		}
	}
	return len(w.late) == 0
}
