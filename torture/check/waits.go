package check

import (
	"sort"
	"time"

	"relock/torture/nemesis"
	"relock/torture/oracle"
)

// Costs are for how long a fault keeps those waiting that it did not hit.
type Costs struct {
	Grant    time.Duration // a session that has vanished: the lease of a lock that was given to it
	Together time.Duration // all that have vanished together: until they count as silent
	Look     time.Duration // until one that waits looks without having been told
}

// Patience is how much of a wait no fault has to explain: a few rounds of the line on a busy machine.
const Patience = 2 * time.Second

// span is a time from one moment to another.
type span struct{ from, to time.Duration }

// waits checks that no call waited for longer than faults explain. What a fault explains is a span of time:
// the fault itself where its victims go on, and what it costs behind that. What is left of the wait outside
// of all spans must be short, however many sessions stand in the line.
func (c *checker) waits(lock int) {
	if c.Costs == nil {
		return
	}
	explained := map[*Process][]span{}
	for i := range c.visits[lock] {
		v := &c.visits[lock][i]
		if v.Got == 0 {
			continue // killed meanwhile
		}
		c.res.Counts["waits"]++
		c.slowest("slowest wait, ms", v.Got-v.Call)
		spans, ok := explained[v.p]
		if !ok {
			spans = c.explained(lock, v.p)
			explained[v.p] = spans
		}
		left := outside(spans, v.Call, v.Got)
		c.slowest("slowest wait that no fault explains, ms", left)
		if left > Patience {
			c.add("no wait without a cause", lock, v.Got, "%v waited for %v from %.3f s on, for %v of which nothing failed",
				v, v.Got-v.Call, v.Call.Seconds(), left)
		}
	}
}

// outside is how much of a time lies in none of the spans, which are in the order of their beginnings.
func outside(spans []span, from, to time.Duration) (left time.Duration) {
	at := from
	for _, s := range spans {
		if s.from >= to {
			break
		}
		left += max(min(s.from, to)-at, 0)
		at = max(at, s.to)
	}
	return left + max(to-at, 0)
}

// explained returns when callers of a process may wait in vain for a lock.
func (c *checker) explained(lock int, p *Process) (spans []span) {
	for i := range c.Faults {
		spans = append(spans, c.span(lock, p, &c.Faults[i]))
	}
	for i := range c.Processes {
		for _, e := range c.Processes[i].Entries {
			// The next owner that the lock was given to may be this one.
			if e.Kind == oracle.Stall && e.End-e.Call > longStall {
				spans = append(spans, span{e.Call, e.End})
			}
		}
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	return spans
}

// span returns for how long a fault keeps callers of p waiting for a lock.
func (c *checker) span(lock int, p *Process, f *nemesis.Fault) span {
	look := c.Costs.Grant + c.Costs.Look // a message was lost
	switch {
	case f.Busy:
		return span{f.Begin, f.End}
	case f.Worker < 0 || f.Worker == p.Worker:
		return span{f.Begin, f.End + reconnected + look}
	case f.Gone == 0:
		cost := recovery + look
		if f.Late {
			cost += p.Lease // of what was taken late
		}
		return span{f.Begin, f.End + cost}
	}
	// The victims were not heard of any more. However long that lasted, others go on without them.
	cost := c.Costs.Grant
	if f.Gone > 1 {
		cost = c.Costs.Together
	}
	if c.inside(lock, f) {
		cost += p.Lease
	}
	return span{f.Begin, f.Begin + recovery + cost + c.Costs.Look}
}

// inside reports whether the victim had the lock when the fault began.
func (c *checker) inside(lock int, f *nemesis.Fault) bool {
	for i := range c.visits[lock] {
		v := &c.visits[lock][i]
		if v.p.Worker == f.Worker && v.In != 0 && v.Got <= f.Begin && (v.Over == 0 || f.Begin <= v.Over) {
			return true
		}
	}
	return false
}
