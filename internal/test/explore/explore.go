package explore

import (
	"fmt"
	"time"

	"relock/internal/test/explore/memredis"
)

// A Report is what an exploration has come to.
type Report struct {
	Name      string
	States    int // that are distinct
	Depth     int // steps that lead to the farthest of them, by the shortest way
	Exhausted bool
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
	return fmt.Sprintf("%-28s %9d states, depth %3d, %s, calm runs %v, %v", r.Name, r.States, r.Depth, how, r.Calm, r.Time.Round(10*time.Millisecond))
}

// An explorer remembers the states that were reached, breadth first. Their numbers are in the order in which
// they were found.
type explorer struct {
	set    *setup
	in     *memredis.Interpreter
	h      *hasher
	number map[key]int32
	parent []int32
	via    []step
	calm   []int32 // the state that the calm run leads to; none: it is at its end; unknown: it was not looked at
	cost   []calmCost
	used   []int8 // faults
	queue  []*world
	first  int // the number of the first in the queue
	steps  []step
}

const (
	none    int32 = -1
	unknown int32 = -2
)

// Explore explores a setup up to a number of states, or for a time.
func (set *setup) Explore(most int, limit time.Duration) (r Report) {
	began := time.Now()
	x := &explorer{set: set, in: memredis.NewInterpreter(), h: newHasher(), number: make(map[key]int32)}
	defer x.in.Close()
	r.Name = set.name
	w := set.begin()
	x.add(w, none, step{})
	levelEnd := 1
	for len(x.queue) > 0 && len(x.parent) < most && time.Since(began) < limit {
		if x.first == levelEnd {
			levelEnd = len(x.parent)
			r.Depth++
		}
		w, at := x.queue[0], int32(x.first)
		x.queue[0] = nil
		x.queue = x.queue[1:]
		x.first++
		if wrong, last := x.expand(w, at); wrong != "" {
			r.Wrong, r.Story = wrong, set.story(append(x.path(at), last...), x.in)
			break
		}
	}
	r.States, r.Exhausted = len(x.parent), len(x.queue) == 0
	if r.Wrong == "" {
		r.Wrong, r.Story = x.liveness(&r)
	}
	r.Time = time.Since(began)
	return r
}

// add gives a state a number, if it is new.
func (x *explorer) add(w *world, from int32, via step) (n int32, isNew bool) {
	k := x.h.of(w)
	if n, ok := x.number[k]; ok {
		return n, false
	}
	n = int32(len(x.parent))
	x.number[k] = n
	x.parent, x.via = append(x.parent, from), append(x.via, via)
	x.calm, x.cost, x.used = append(x.calm, unknown), append(x.cost, calmCost{}), append(x.used, x.set.faults-w.faults)
	x.queue = append(x.queue, w)
	return n, true
}

// expand takes each step that is possible in a state. It returns what is wrong behind one of them, and that step.
func (x *explorer) expand(w *world, at int32) (wrong string, last []step) {
	x.steps = w.steps(x.steps[:0])
	x.calm[at] = none
	if len(x.steps) == 0 || w.finished() {
		if wrong := w.end(); wrong != "" {
			return wrong, nil
		}
	}
	calm := !w.finished()
	for _, s := range x.steps {
		next := w.copy()
		next.take(s, x.in)
		if wrong := next.check(); wrong != "" {
			return wrong, []step{s}
		}
		n, _ := x.add(next, at, s)
		if calm && s.cost == 0 {
			x.calm[at], x.cost[at] = n, s.calmCost()
			calm = false
		}
	}
	return "", nil
}

// path returns the steps that lead to a state.
func (x *explorer) path(n int32) (steps []step) {
	for ; x.parent[n] != none; n = x.parent[n] {
		steps = append(steps, x.via[n])
	}
	for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
		steps[i], steps[j] = steps[j], steps[i]
	}
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

// end returns what is wrong if nothing can happen any more.
func (w *world) end() string {
	if !w.finished() {
		return "nothing can happen any more, and not all have done what they were to do"
	}
	return ""
}
