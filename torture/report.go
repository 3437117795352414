package torture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// shown is how many of the tolerated violations a report shows.
const shown = 10

// Report adds up the numbers of rounds.
type Report struct {
	Rounds     map[string]int // by topology
	Faults     map[string]int // by name
	Counts     map[string]int // by what was counted
	Violations []string
	Tolerated  []string
	Chaos      time.Duration
	Seeds      []uint64
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{Rounds: map[string]int{}, Faults: map[string]int{}, Counts: map[string]int{}}
}

// Add adds a round.
func (r *Report) Add(o *Outcome) {
	kind := o.Plan.Topology
	if o.Plan.Loss {
		kind += ", data loss forced"
	}
	r.Rounds[kind]++
	r.Seeds = append(r.Seeds, o.Plan.Seed)
	r.Chaos += o.Plan.Chaos
	for _, f := range o.Faults {
		r.Faults[f.Name]++
	}
	for what, n := range o.Result.Counts {
		if what == "acquisitions in histories" {
			r.Counts[what+", "+kind] += n
		}
		if strings.HasPrefix(what, "slowest") {
			r.Counts[what] = max(r.Counts[what], n)
		} else {
			r.Counts[what] += n
		}
	}
	for _, f := range o.Fails {
		r.Violations = append(r.Violations, fmt.Sprintf("[%v] %s", o.Plan, f))
	}
	for _, v := range o.Result.Violations {
		text := fmt.Sprintf("[%v] %v", o.Plan, v)
		if v.Tolerated {
			r.Tolerated = append(r.Tolerated, text)
		} else {
			r.Violations = append(r.Violations, text)
		}
	}
}

// String is the report as text.
func (r *Report) String() string {
	var b strings.Builder
	table := func(title string, m map[string]int) {
		fmt.Fprintf(&b, "%s:\n", title)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "  %8d  %s\n", m[k], k)
		}
	}
	table("rounds", r.Rounds)
	fmt.Fprintf(&b, "time with faults: %v\n", r.Chaos)
	fmt.Fprintf(&b, "seeds: %v\n", r.Seeds)
	table("faults", r.Faults)
	table("counted", r.Counts)
	fmt.Fprintf(&b, "violations: %d\n", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	fmt.Fprintf(&b, "tolerated, for data was lost: %d\n", len(r.Tolerated))
	for _, v := range r.Tolerated[:min(len(r.Tolerated), shown)] {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}
