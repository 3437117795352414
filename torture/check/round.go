package check

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"relock/torture/nemesis"
	"relock/torture/oracle"
	"relock/torture/worker"
)

// Process is one life of a worker process.
type Process struct {
	Worker  int
	Session string
	Lease   time.Duration
	Killed  bool
	Entries []oracle.Entry
}

// Round is what happened from the start of the workers until the last one had ended.
type Round struct {
	Locks     []worker.Lock
	Processes []Process
	Faults    []nemesis.Fault
	MaxLease  time.Duration
	Minority  int           // how many servers may fail at the same time without harm to a quorum
	CalmFrom  time.Duration // from then on nothing was made to fail
	Counters  map[int]int64 // what the counters had in the end
	Heads     []uint64      // of the sets in the end, for each lock; see oracle.Set
	Histories bool          // porcupine has to find an order of all sections
	Costs     *Costs        // of faults for those that wait; nil: waits are not checked
}

// Violation is something that must not be.
type Violation struct {
	Check     string
	Lock      string
	At        time.Duration
	Text      string
	Tolerated bool // data loss that was forced explains it
}

func (v Violation) String() string {
	s := fmt.Sprintf("%s of %s at %.3f s: %s", v.Check, v.Lock, v.At.Seconds(), v.Text)
	if v.Tolerated {
		s += " (tolerated: forced loss of data)"
	}
	return s
}

// Result is what the checks found, and what there was to be checked.
type Result struct {
	Violations []Violation
	Counts     map[string]int
}

// visit is a section with the process that it happened in.
type visit struct {
	oracle.Entry
	p *Process
}

func (v *visit) String() string {
	owner := v.p.Session
	if v.Owner != 0 {
		owner += fmt.Sprintf(" as owner-%d", v.Owner)
	}
	return fmt.Sprintf("%s [%.4f, %.4f] n=%d token=%d flags=%d outcome=%d",
		owner, v.In.Seconds(), v.Safe.Seconds(), v.N, v.Token, v.Flags, v.Outcome)
}

// checker runs the checks of one round.
type checker struct {
	*Round
	res    Result
	visits [][]visit           // of each lock, in the order of entering
	stalls map[*Process][]span // when a process did not run, by its own watch or by what the nemesis did
}

// Run runs all checks.
func Run(r *Round) Result {
	c := &checker{Round: r, visits: make([][]visit, len(r.Locks))}
	c.res.Counts = map[string]int{}
	c.stalls = c.stopped()
	for i := range r.Processes {
		p := &r.Processes[i]
		for _, e := range p.Entries {
			c.count(e)
			if e.Kind == oracle.Section {
				c.visits[e.Lock] = append(c.visits[e.Lock], visit{e, p})
			}
		}
	}
	for i := range r.Locks {
		all := c.visits[i]
		sort.Slice(all, func(a, b int) bool { return all[a].In < all[b].In })
		c.exclusion(i)
		c.tokens(i)
		c.order(i)
		c.waits(i)
		c.sum(i)
		c.set(i)
		c.history(i)
	}
	c.losses()
	c.outages()
	c.progress()
	c.calls()
	return c.res
}

func (c *checker) count(e oracle.Entry) {
	switch {
	case e.Kind == oracle.Section && e.Got != 0 && e.In != 0:
		c.res.Counts["sections"]++
		c.res.Counts["sections "+string(c.Locks[e.Lock].Kind)]++
		if e.Has(oracle.Joint) {
			c.res.Counts["sections by multilock, once for each lock"]++
		}
	case e.Kind == oracle.Count && e.Outcome == oracle.Done:
		c.res.Counts["counter calls"]++
	case e.Kind == oracle.Stall:
		c.res.Counts["stalls of a process"]++
	}
	switch {
	case e.Kind == oracle.Section && e.Outcome == oracle.Lost:
		c.res.Counts["sections lost"]++
	case e.Kind == oracle.Odd:
		c.add("no surprises", e.Lock, e.Call, "see stderr")
	}
}

// add notes a violation, unless it is known to be explained by loss of data.
func (c *checker) add(check string, lock int, at time.Duration, format string, args ...any) {
	v := Violation{Check: check, Lock: c.Locks[lock].Name, At: at, Text: fmt.Sprintf(format, args...)}
	v.Tolerated = c.lossBefore(at)
	v.Text += c.near(at)
	c.res.Violations = append(c.res.Violations, v)
}

// near says what failed shortly before a time.
func (c *checker) near(at time.Duration) string {
	var b strings.Builder
	for _, f := range c.Faults {
		if f.Begin < at && at < f.End+8*time.Second {
			fmt.Fprintf(&b, "\n        %.3f to %.3f s: %s", f.Begin.Seconds(), f.End.Seconds(), f.Name)
			if f.Worker >= 0 {
				fmt.Fprintf(&b, ", w%d", f.Worker)
			}
		}
	}
	return b.String()
}

// lossBefore reports whether data that mattered at a time may have been lost. A lock that was
// lost is trusted for a lease at most, and what a promoted replica did not hear of stands for
// another.
func (c *checker) lossBefore(at time.Duration) bool {
	for _, f := range c.Faults {
		if f.Loss && f.Begin <= at && at <= f.End+2*c.MaxLease {
			return true
		}
	}
	return false
}

// anyLoss reports whether data was lost from a time on until another.
func (c *checker) anyLoss(from, to time.Duration) bool {
	for _, f := range c.Faults {
		if f.Loss && f.Begin <= to && from <= f.End {
			return true
		}
	}
	return false
}
