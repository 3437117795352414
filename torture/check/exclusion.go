package check

import (
	"time"

	"relock/torture/oracle"
	"relock/torture/worker"
)

// exclusion checks that no sections stood at the same time that must not. It does so twice.
//
// By lease: a process trusted its section, by Hold.Remaining and by the context. No pause
// excuses that, since Remaining reads the clock.
//
// By context alone: the section's context had not ended. A process that did not run could not
// end it in time, which is told apart.
func (c *checker) exclusion(lock int) {
	c.overlaps(lock, "exclusion", func(v *visit) time.Duration { return v.Safe }, func(*visit, time.Duration) bool { return false })
	c.overlaps(lock, "exclusion by context", func(v *visit) time.Duration { return v.Seen },
		func(v *visit, at time.Duration) bool {
			return v.Seen > v.Safe && c.stalled(v.p, v.Safe, v.Seen) && at > v.Safe
		})
}

// overlaps sweeps over the sections of a lock in the order of entering.
func (c *checker) overlaps(lock int, check string, last func(*visit) time.Duration, excused func(*visit, time.Duration) bool) {
	spec := c.Locks[lock]
	var open []*visit
	for i := range c.visits[lock] {
		v := &c.visits[lock][i]
		if v.In == 0 {
			continue
		}
		n := 0
		for _, o := range open {
			if last(o) > v.In {
				open[n] = o
				n++
			}
		}
		open = open[:n]
		taken := v.N
		for _, o := range open {
			taken += o.N
			if spec.Kind == worker.Semaphore || together(&o.Entry, &v.Entry) {
				continue
			}
			if excused(o, v.In) {
				c.res.Counts["late notices of a process that did not run"]++
				continue
			}
			c.add(check, lock, v.In, "%v overlaps %v", o, v)
		}
		if spec.Kind == worker.Semaphore && taken > int64(spec.Limit) && !anyExcused(open, v.In, excused) {
			c.add(check, lock, v.In, "%d permits of %d are out: %v and %v", taken, spec.Limit, open, v)
		}
		open = append(open, v)
	}
}

func anyExcused(open []*visit, at time.Duration, excused func(*visit, time.Duration) bool) bool {
	for _, o := range open {
		if excused(o, at) {
			return true
		}
	}
	return false
}

// together reports whether two sections may stand at the same time.
func together(a, b *oracle.Entry) bool {
	return a.Owner != 0 && a.Owner == b.Owner || a.Has(oracle.Read) && b.Has(oracle.Read)
}

// tokens checks that each section has a higher token than all before it. Entries of one named
// owner share a token.
func (c *checker) tokens(lock int) {
	if k := c.Locks[lock].Kind; k != worker.Fenced && k != worker.FairToken {
		return
	}
	var last *visit
	for i := range c.visits[lock] {
		v := &c.visits[lock][i]
		if v.In == 0 {
			continue
		}
		c.res.Counts["tokens"]++
		if last != nil && v.Token <= last.Token && (v.Owner == 0 || v.Owner != last.Owner) {
			if c.anyLoss(last.In-c.MaxLease, v.In) {
				c.res.Counts["tokens that began anew after a loss"]++
			} else {
				c.add("tokens grow", lock, v.In, "%v after %v", v, last)
			}
		}
		if last == nil || v.Token > last.Token || c.anyLoss(last.In-c.MaxLease, v.In) {
			last = v
		}
	}
}
