package check

import (
	"relock/torture/oracle"
	"relock/torture/worker"
)

// set checks that nothing was lost of what sections have added to the set of their lock: each of those
// that were seen to stand when they had added theirs is there in the end. One whose process was killed,
// or did not run, in between may be there or not.
func (c *checker) set(lock int) {
	if lock >= len(c.Heads) || c.Locks[lock].Kind == worker.Semaphore {
		return
	}
	all := map[uint64]*visit{}
	for i := range c.visits[lock] {
		v := &c.visits[lock][i]
		if v.Tried != 0 {
			all[v.ID] = v
		}
		c.undisturbed(lock, v)
	}
	there := c.reach(all, c.Heads[lock], 0)
	excused := c.overwritten(all)
	for id, v := range all {
		_, in := there[id]
		switch {
		case in:
			c.res.Counts["found in the set"]++
		case v.Added == 0:
			c.res.Counts["not in the set, and may have happened"]++
		case excused[id]:
			c.res.Counts["lost by a process that did not run"]++
		default:
			c.add("lost from the set", lock, v.Added, "%v", v)
		}
	}
}

// undisturbed checks that the set has stayed as it was while a reader was in.
func (c *checker) undisturbed(lock int, v *visit) {
	if !v.Has(oracle.Read) || v.Added == 0 {
		return
	}
	c.res.Counts["readers that saw the set twice"]++
	if v.Replaced != v.Saw {
		c.add("a writer beside a reader", lock, v.Added, "%v saw %x, then %x in the set", v, v.Saw, v.Replaced)
	}
}

// reach returns what is reached from a record on, as far as another one.
func (c *checker) reach(all map[uint64]*visit, from, until uint64) map[uint64]bool {
	there := map[uint64]bool{}
	for id := from; id != until && id != 0 && !there[id]; {
		v, ok := all[id]
		if !ok {
			break
		}
		there[id] = true
		id = v.Saw
	}
	return there
}

// overwritten returns what processes have lost that did not run between the last look at their section
// and the change, or behind it, by their own watch. No lock can prevent that; a fencing token can.
func (c *checker) overwritten(all map[uint64]*visit) map[uint64]bool {
	lost := map[uint64]bool{}
	for _, v := range all {
		if v.Added != 0 || v.Replaced == v.Saw || !c.stalled(v.p, v.Safe, v.Tried+longStall) {
			continue
		}
		for id := range c.reach(all, v.Replaced, v.Saw) {
			lost[id] = true
		}
	}
	return lost
}
