package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"relock/torture/history"
	"relock/torture/oracle"
	"relock/torture/worker"
)

// stretch is how many sections a stretch of a history has, at least. The time that porcupine takes grows
// with the number of operations in one piece.
const stretch = 32

// history has porcupine look for an order of all that was done with a lock. The history is cut into
// stretches at moments in which it is certain who had the lock, and that nobody else can have had it: all
// that was pending takes place behind the cut, all that was given back, if at all, before it. The history
// has an order if and only if each stretch has one.
func (c *checker) history(lock int) {
	spec := c.Locks[lock]
	if !c.Histories || spec.Kind == worker.Counter || spec.Kind == worker.Quorum {
		return
	}
	var all []*visit // in the order of entering
	for i := range c.visits[lock] {
		if v := &c.visits[lock][i]; v.In != 0 {
			all = append(all, v)
			c.res.Counts["acquisitions in histories"]++
		}
	}
	h := new(cutter)
	if spec.Kind == worker.Semaphore {
		h.shared, h.limit = true, int64(spec.Limit)
	}
	for i, v := range all {
		h.enter(v)
		if i > 0 && all[i-1].p != v.p {
			c.res.Counts["acquisitions behind one of another process"]++
		}
		first, ok := h.full(v)
		if ok && len(h.ops) >= 2*stretch {
			c.judge(lock, h, v.In)
			h.cut(v.In, first)
		}
	}
	c.judge(lock, h, history.Forever)
}

// judge has porcupine check the stretch that ends at a time.
func (c *checker) judge(lock int, h *cutter, end time.Duration) {
	ops := h.before(end)
	c.res.Counts["stretches of histories"]++
	switch history.Explains(history.Lock(h.limit, h.first), ops) {
	case porcupine.Unknown:
		c.res.Counts["stretches of histories without an answer in time"]++
	case porcupine.Illegal:
		v := Violation{
			Check: "history", Lock: c.Locks[lock].Name, At: h.from,
			Tolerated: c.anyLoss(h.from-2*c.MaxLease, min(end, h.last)),
		}
		v.Text = "no order explains these operations:" + describe(h.first, ops) + c.near(min(end, h.last))
		c.res.Violations = append(c.res.Violations, v)
	}
}

// cutter cuts the history of a lock.
type cutter struct {
	limit  int64
	shared bool // all take permits

	from, last time.Duration // of the stretch
	first      history.Held  // at its beginning
	ops        []operation   // not yet in a stretch that was checked
	open       []*visit      // sections that stood when the last one entered, and that one
}

// operation is one with its times.
type operation struct {
	history.Op
	call, end time.Duration
}

// enter adds what a section does. That it gives the lock back may have happened from the last time on at
// which it was seen to stand, and has happened by the return of an Unlock without an error.
func (h *cutter) enter(v *visit) {
	op := history.Op{Section: v.ID, N: v.N, Token: v.Token, Shared: h.shared || v.Has(oracle.Read)}
	h.ops = append(h.ops, operation{op, h.earliest(v), v.Got})
	op.Gives = true
	end := history.Forever
	if v.Outcome == oracle.Released {
		end = v.Over
	}
	h.ops = append(h.ops, operation{op, v.Safe, end})
	h.last = v.In
	h.open = slices.DeleteFunc(h.open, func(o *visit) bool { return o.Safe < v.In })
	h.open = append(h.open, v)
}

// earliest is when a section can have taken the lock at the earliest: not while another one certainly had it.
// Without that porcupine would try each caller that waits in the place of each other.
func (h *cutter) earliest(v *visit) time.Duration {
	at := v.Call
	for _, o := range h.open {
		if both := h.shared || o.Has(oracle.Read) && v.Has(oracle.Read); !both && o.Safe <= v.Got {
			at = max(at, o.Safe)
		}
	}
	return at
}

// full reports whether those that certainly have the lock when v enters leave nothing to others.
func (h *cutter) full(v *visit) (history.Held, bool) {
	switch {
	case h.shared:
		var out int64
		for _, o := range h.open {
			out += o.N
		}
		return history.Held{Out: out}, out == h.limit
	case v.Has(oracle.Read):
		return history.Held{}, false
	}
	return history.Held{Section: v.ID, Token: v.Token}, true
}

// cut begins another stretch.
func (h *cutter) cut(at time.Duration, first history.Held) {
	h.ops = slices.DeleteFunc(h.ops, func(o operation) bool { return h.past(o, at) })
	for i := range h.ops {
		h.ops[i].call = max(h.ops[i].call, at)
	}
	h.from, h.first = at, first
}

// past reports whether an operation has taken place before a cut, if at all: a take that has returned, and
// what was given back by sections that are not among those that stand.
func (h *cutter) past(o operation, at time.Duration) bool {
	if o.Gives {
		return o.call < at
	}
	return o.end <= at
}

// before returns the operations that take place before a time, by which they have ended.
func (h *cutter) before(end time.Duration) (ops []porcupine.Operation) {
	for _, o := range h.ops {
		if h.past(o, end) {
			// Each is a client of its own: porcupine asks for that only to draw.
			ops = append(ops, porcupine.Operation{
				ClientId: len(ops), Input: o.Op, Call: int64(o.call), Return: int64(min(o.end, end)),
			})
		}
	}
	return ops
}

// describe lists operations, for a report of what no order explains.
func describe(first history.Held, ops []porcupine.Operation) string {
	text := fmt.Sprintf("\n\tin the beginning: %+v", first)
	for _, o := range ops {
		text += fmt.Sprintf("\n\t[%.6f, %.6f] %+v", time.Duration(o.Call).Seconds(), time.Duration(o.Return).Seconds(), o.Input)
	}
	return text
}
