package check

import (
	"slices"
	"time"

	"relock/torture/oracle"
)

// stopped returns when each process did not run, by its own watch or by what the nemesis did, in the order
// of the beginnings.
func (c *checker) stopped() map[*Process][]span {
	all := map[*Process][]span{}
	for i := range c.Processes {
		p := &c.Processes[i]
		for _, f := range c.Faults {
			if f.Pause && f.Worker == p.Worker {
				all[p] = append(all[p], span{f.Begin, f.End})
			}
		}
		for _, e := range p.Entries {
			if e.Kind == oracle.Stall {
				all[p] = append(all[p], span{e.Call, e.End})
			}
		}
		slices.SortFunc(all[p], func(a, b span) int { return int(a.from - b.from) })
	}
	return all
}

// stalled reports whether the process did not run for some of the time.
func (c *checker) stalled(p *Process, from, to time.Duration) bool {
	for _, s := range c.stalls[p] {
		if s.from > to {
			return false
		}
		if from <= s.to {
			return true
		}
	}
	return false
}
