package explore

import "fmt"

// The calm run from a state: no more faults, all that can happen happens in a fixed order, and time passes only if
// there is nothing else. It must come to an end in which all have had their turn, within so many looks.

// calmCost is what a calm run needs: looks, steps in which time passes, and how many ms pass in those.
type calmCost struct {
	Looks, Waits int16
	Ms           int32
}

func (c calmCost) plus(d calmCost) calmCost {
	return calmCost{c.Looks + d.Looks, c.Waits + d.Waits, c.Ms + d.Ms}
}

func (c calmCost) less(d calmCost) calmCost {
	return calmCost{c.Looks - d.Looks, c.Waits - d.Waits, c.Ms - d.Ms}
}

func (c calmCost) exceeds(most calmCost) bool {
	return c.Looks > most.Looks || c.Waits > most.Waits || c.Ms > most.Ms
}

func (c calmCost) max(d calmCost) calmCost {
	return calmCost{max(c.Looks, d.Looks), max(c.Waits, d.Waits), max(c.Ms, d.Ms)}
}

func (c calmCost) String() string {
	return fmt.Sprintf("%d looks %d waits of %d ms", c.Looks, c.Waits, c.Ms)
}

// calmCost is that of a step from one state to the next.
func (s step) calmCost(from, to *world) (c calmCost) {
	if s.look {
		c.Looks = 1
	}
	if s.kind == pass {
		c.Waits, c.Ms = 1, int32(to.now()-from.now())
	}
	return c
}

// liveness follows the calm run from each state that was reached.
func (x *explorer) liveness(r *Report) (wrong, story string) {
	const open, walked, known = 0, 1, 2
	costs, marks := make([]calmCost, len(x.calm)), make([]byte, len(x.calm))
	if wrong, story = x.beyond(costs, marks, known); wrong != "" {
		return wrong, story
	}
	var way []int32
	for n := range costs {
		way = way[:0]
		at := int32(n)
		for marks[at] == open && x.calm[at] >= 0 {
			marks[at] = walked
			way = append(way, at)
			at = x.calm[at]
		}
		if marks[at] == walked {
			return "a waiter is never let in: the calm run goes round in a circle", x.set.story(append(x.path(at), x.calmSteps(at)...), x.workers[0])
		}
		marks[at] = known
		for i := len(way) - 1; i >= 0; i-- {
			costs[way[i]] = costs[at].plus(x.cost[way[i]])
			at = way[i]
			marks[at] = known
		}
		used := int(x.used[n])
		r.Calm[used] = r.Calm[used].max(costs[n])
		if wrong = x.set.tooLong(costs[n], used); wrong != "" {
			return wrong, x.set.story(append(x.path(int32(n)), x.calmSteps(int32(n))...), x.workers[0])
		}
	}
	return "", ""
}

// tooLong says that a calm run needs more than it may after so many faults; "" if it does not.
func (set *Setup) tooLong(cost calmCost, faults int) string {
	if most := set.calmMost[min(faults, len(set.calmMost)-1)]; cost.exceeds(most) {
		return fmt.Sprintf("a calm run needs %v, and not at most %v", cost, most)
	}
	return ""
}

// beyond follows the calm runs from the states that were not expanded.
func (x *explorer) beyond(costs []calmCost, marks []byte, known byte) (wrong, story string) {
	memories := make(map[*worker]calmMemory)
	for _, wo := range x.workers {
		memories[wo] = make(calmMemory)
	}
	wrongs := make([]string, len(x.queue))
	x.inParallel(len(x.queue), func(wo *worker, i int) {
		at := x.first + i
		_, costs[at], wrongs[i] = x.queue[i].calm(wo, memories[wo])
		marks[at] = known
	})
	for i, wrong := range wrongs {
		if wrong != "" {
			steps, _, _ := x.queue[i].calm(x.workers[0], nil)
			return wrong, x.set.story(append(x.path(int32(x.first+i)), steps...), x.workers[0])
		}
	}
	return "", ""
}

// calmSteps are those of the calm run from a state; of one without an end some.
func (x *explorer) calmSteps(at int32) []step {
	w := x.set.begin()
	for _, s := range x.path(at) {
		w = w.copy()
		w.take(s, x.workers[0])
	}
	steps, _, wrong := w.calm(x.workers[0], nil)
	if wrong != "" {
		steps = steps[:min(len(steps), 60)]
	}
	return steps
}

// calmStep is the next step of the calm run.
func (w *world) calmStep() (step, bool) {
	for _, s := range w.steps(nil) {
		if s.cost == 0 {
			return s, true
		}
	}
	return step{}, false
}

// calmMemory is what calm runs need from states beyond those that were expanded.
type calmMemory map[key]calmCost

// mostCalm is how many steps a calm run may have.
const mostCalm = 500

// calm takes the steps of the calm run to its end, and returns them, what they cost, and what was wrong.
func (w *world) calm(wo *worker, m calmMemory) (steps []step, cost calmCost, wrong string) {
	type mark struct {
		key  key
		cost calmCost
	}
	var marks []mark
	for !w.finished() {
		if m != nil {
			k := wo.h.of(w)
			if n, ok := m[k]; ok {
				cost = cost.plus(n)
				break
			}
			marks = append(marks, mark{k, cost})
		}
		s, ok := w.calmStep()
		switch {
		case !ok:
			return steps, cost, "nothing can happen any more, and not all have done what they were to do"
		case len(steps) > mostCalm:
			return steps, cost, "a waiter is never let in: the calm run has no end"
		}
		steps = append(steps, s)
		before := w
		w = w.copy()
		w.take(s, wo)
		cost = cost.plus(s.calmCost(before, w))
		if wrong := w.check(); wrong != "" {
			return steps, cost, wrong
		}
	}
	for _, k := range marks {
		m[k.key] = cost.less(k.cost)
	}
	return steps, cost, ""
}
