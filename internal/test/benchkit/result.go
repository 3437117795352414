package benchkit

import (
	"slices"
	"time"
)

// Result is what one measurement has seen, in one process or, merged, in several.
type Result struct {
	Ops        int             // rounds that entered within the window
	Elapsed    time.Duration   // the window
	Inside     time.Duration   // of those rounds, added up
	Waits      []time.Duration // of all rounds, see the package comment
	PerWorker  []int           // rounds within the window, by worker
	Longest    []time.Duration // wait of each worker
	GaveUp     int             // how often a lock used up its tries
	Stuck      int             // who was not let in long after the window
	Violations int             // who came in and should not have
	Mallocs    uint64          // in the window, of the whole process
	Bytes      uint64          // the same
}

// add takes one worker's record in.
func (r *Result) add(w *record, window time.Duration) {
	ops := 0
	for i, at := range w.entered {
		if at <= window {
			ops++
			r.Inside += w.inside[i]
		}
	}
	r.Ops += ops
	r.PerWorker = append(r.PerWorker, ops)
	r.Waits = append(r.Waits, w.waited...)
	r.Longest = append(r.Longest, Percentile(w.waited, 1))
	r.GaveUp += w.gaveUp
	r.Stuck += w.stuck
}

// Merge takes in what another process has seen at the same time. Violations are not added:
// the gate, which all share, has them.
func (r *Result) Merge(o Result) {
	r.Ops += o.Ops
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	r.Inside += o.Inside
	r.Waits = append(r.Waits, o.Waits...)
	r.PerWorker = append(r.PerWorker, o.PerWorker...)
	r.Longest = append(r.Longest, o.Longest...)
	r.GaveUp += o.GaveUp
	r.Stuck += o.Stuck
	r.Mallocs += o.Mallocs
	r.Bytes += o.Bytes
}

// Rate returns rounds a second.
func (r Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Ops) / r.Elapsed.Seconds()
}

// Share returns for what part of the window somebody was inside, for an exclusive lock.
func (r Result) Share() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return r.Inside.Seconds() / r.Elapsed.Seconds()
}

// PerOp returns n by round.
func (r Result) PerOp(n float64) float64 { return n / float64(max(1, r.Ops)) }

// Wait returns the wait that a part p of the rounds (0 to 1) did not exceed.
func (r Result) Wait(p float64) time.Duration { return Percentile(r.Waits, p) }

// TypicalLongest returns the longest wait of the median worker. It says what a goroutine has
// to reckon with also where the rounds' own percentiles do not: a lock that lets the same one
// in again and again has mostly rounds without a wait.
func (r Result) TypicalLongest() time.Duration { return Percentile(r.Longest, 0.5) }

// Jain returns Jain's index of the workers' rounds: 1 when all had as many, 1/n when one had
// all.
func (r Result) Jain() float64 {
	var sum, squares float64
	for _, n := range r.PerWorker {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(r.PerWorker)) * squares)
}

// Percentile returns the value that a part p (0 to 1) of the values does not exceed; 0 if
// there are none. The values need not be sorted, and are not changed.
func Percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
