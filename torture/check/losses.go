package check

import (
	"sort"
	"time"

	"relock/torture/nemesis"
	"relock/torture/oracle"
	"relock/torture/worker"
)

// recovery is for how long after a fault a session may still suffer from it.
const recovery = 500 * time.Millisecond

// longStall is what delays a renewal noticeably. Shorter ones are many on a busy machine.
const longStall = 200 * time.Millisecond

// losses checks that no section was lost without a cause. A lock is renewed at each third of
// its lease, and after an error again a twentieth later. So every renewal must have failed
// in the last 60 % before a loss, and a stretch in which one can be sent must not be there.
func (c *checker) losses() {
	for lock := range c.visits {
		for i := range c.visits[lock] {
			v := &c.visits[lock][i]
			if v.Outcome != oracle.Lost || v.Owner != 0 || c.lossBefore(v.End) {
				continue
			}
			from, to := max(v.Got, v.End-v.p.Lease*60/100), v.End
			enough := v.p.Lease*8/100 + 200*time.Millisecond
			if v.Has(oracle.Late) {
				// The lock stood for a lease while the release did not get through, and
				// was not renewed. Without any fault it does get through.
				to = v.Over
				enough = to - from - 1
			}
			if calm := c.calmStretch(v.p, from, to, c.harmless(v)); calm > enough {
				c.add("no loss without a cause", lock, v.End, "%v lost at %.3f s, with a lease of %v; nothing failed for %v before",
					v, v.End.Seconds(), v.p.Lease, calm)
			} else {
				c.res.Counts["losses that a fault explains"]++
			}
		}
	}
}

// harmless returns which faults cannot have ended a section: those of a minority of the servers
// if the section is a quorum's, and no others failed during it. It may have begun without the
// votes of those that failed shortly before: they give none for a lease.
func (c *checker) harmless(v *visit) func(*nemesis.Fault) bool {
	hit := map[string]bool{}
	if c.Locks[v.Lock].Kind == worker.Quorum {
		for _, f := range c.Faults {
			if f.Begin <= v.End && v.Call <= f.End+v.p.Lease+reconnected {
				for _, s := range f.Servers {
					hit[s] = true
				}
			}
		}
	}
	few := 0 < len(hit) && len(hit) <= c.Minority
	return func(f *nemesis.Fault) bool { return few && f.Servers != nil }
}

// calmStretch is the longest time without anything that disturbs a process.
func (c *checker) calmStretch(p *Process, from, to time.Duration, harmless func(*nemesis.Fault) bool) (longest time.Duration) {
	var bad []span
	for _, f := range c.Faults {
		if (f.Worker < 0 || f.Worker == p.Worker) && !harmless(&f) {
			bad = append(bad, span{f.Begin, f.End + recovery})
		}
	}
	for _, e := range p.Entries {
		if e.Kind == oracle.Stall && e.End-e.Call > longStall {
			bad = append(bad, span{e.Call, e.End})
		}
	}
	sort.Slice(bad, func(i, j int) bool { return bad[i].from < bad[j].from })
	at := from
	for _, b := range bad {
		if b.from >= to {
			break
		}
		longest = max(longest, b.from-at)
		at = max(at, b.to)
	}
	return max(longest, to-at)
}

// progress checks that each lock could be had after the faults had ended.
func (c *checker) progress() {
	for i := range c.Processes {
		p := &c.Processes[i]
		for _, e := range p.Entries {
			switch {
			case e.Kind != oracle.Probe:
			case e.Outcome == oracle.Held:
				c.res.Counts["probes"]++
				ms := int((e.Got - e.Call).Milliseconds())
				c.res.Counts["slowest probe, ms"] = max(c.res.Counts["slowest probe, ms"], ms)
			case e.Outcome == oracle.Refused || e.Got == 0 && !p.Killed:
				c.res.Violations = append(c.res.Violations, Violation{
					Check: "progress", Lock: c.Locks[e.Lock].Name, At: e.Call,
					Text: p.Session + " did not get it although the faults had ended",
				})
			}
		}
	}
}

// overtime is how much longer than its bound a call may take. It is lenient: how long a client
// takes to find out that a connection is dead comes on top.
const overtime = 12 * time.Second

// calls checks that no call took for ever. No wait is bounded by more than 8 s.
func (c *checker) calls() {
	for i := range c.Processes {
		p := &c.Processes[i]
		for _, e := range p.Entries {
			if e.Kind != oracle.Section && e.Kind != oracle.Count {
				continue
			}
			took := e.Got - e.Call
			if e.Got == 0 || c.stalled(p, e.Call, e.Got) {
				continue
			}
			c.slowest("slowest call, ms", took)
			if took > 8*time.Second+overtime {
				c.add("calls end", e.Lock, e.Call, "%s: a call took %v", p.Session, took)
			}
			if e.Over != 0 && !c.stalled(p, e.End, e.Over) {
				c.slowest("slowest unlock, ms", e.Over-e.End)
				if e.Over-e.End > overtime {
					c.add("calls end", e.Lock, e.End, "%s: an unlock took %v", p.Session, e.Over-e.End)
				}
			}
		}
	}
}

func (c *checker) slowest(what string, d time.Duration) {
	c.res.Counts[what] = max(c.res.Counts[what], int(d.Milliseconds()))
}

// sum checks that a counter has what its calls leave, as far as it is known which counted.
func (c *checker) sum(lock int) {
	if c.Locks[lock].Kind != worker.Counter {
		return
	}
	if c.anyLoss(0, 1<<62) {
		c.res.Counts["sums not checked, for data was lost"]++
		return
	}
	low := int64(c.Locks[lock].Limit)
	high := low
	calls, unsure, drains := 0, 0, false
	for i := range c.Processes {
		for _, e := range c.Processes[i].Entries {
			if e.Kind != oracle.Count || e.Lock != lock || e.Outcome == oracle.Refused {
				continue
			}
			calls++
			n := e.N
			if e.Op == oracle.OpAcquire || e.Op == oracle.OpDrain {
				n = -n
			}
			if e.Outcome == oracle.Done {
				low, high = low+n, high+n
				continue
			}
			unsure++
			drains = drains || e.Op == oracle.OpDrain
			low, high = low+min(n, 0), high+max(n, 0)
		}
	}
	c.res.Counts["sums checked"]++
	c.res.Counts["counter calls of unknown outcome"] += unsure
	got := c.Counters[lock]
	// A drain whose answer is unknown may have taken any number.
	if got > high || got < low && !drains {
		c.add("counter sum", lock, c.CalmFrom, "it has %d, and should have %d to %d after %d calls, %d of them of unknown outcome",
			got, low, high, calls, unsure)
	}
}
