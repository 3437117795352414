package check

import (
	"sort"
	"time"

	"relock/torture/oracle"
	"relock/torture/worker"
)

// The margins of the check of fair order, lenient towards a busy machine.
const (
	// arrived is after how long a waiter certainly stands in the queue in Redis.
	arrived = 500 * time.Millisecond
	// settled is after how long a fault has no consequences for a queue: a grant to a waiter
	// that does not answer is given up after a queue lease.
	settled = 5 * time.Second
)

// order checks that a fair lock was granted in the order of arrival. When a waiter arrived is
// known only roughly, so pairs count that called far apart, with no fault near.
func (c *checker) order(lock int) {
	if k := c.Locks[lock].Kind; k != worker.Fair && k != worker.FairToken {
		return
	}
	var got []visit
	for _, v := range c.visits[lock] {
		if v.In != 0 && v.Owner == 0 && !v.Has(oracle.Try) && !v.Has(oracle.Joint) {
			got = append(got, v)
		}
	}
	sort.Slice(got, func(a, b int) bool { return got[a].Call < got[b].Call })
	for i := range got {
		a := &got[i]
		for j := i + 1; j < len(got); j++ {
			b := &got[j]
			if b.Call >= a.Got {
				break // b came when a was in
			}
			if b.Call < a.Call+arrived || c.disturbed(a, b) {
				continue
			}
			c.res.Counts["pairs of fair waiters"]++
			if b.Got < a.In && b.In < a.In {
				c.add("fair order", lock, b.In, "%v called at %.3f s, before %v at %.3f s, and came in after it",
					a, a.Call.Seconds(), b, b.Call.Seconds())
			}
		}
	}
}

// disturbed reports whether a fault may have cost one of two waiters its position.
func (c *checker) disturbed(a, b *visit) bool {
	from, to := a.Call, max(a.In, b.In)
	for _, f := range c.Faults {
		near := f.Begin <= to && from <= f.End+settled
		if near && (f.Worker < 0 || f.Worker == a.p.Worker || f.Worker == b.p.Worker || f.Killed) {
			return true
		}
	}
	return c.stalled(a.p, from, to) || c.stalled(b.p, from, to)
}
