package engine

import "relock/internal/kind"

// What the queue of a kind with permits needs to know of sizes: whether what is left is enough
// for the next caller, and which callers ask for more than there can ever be. Package queue keeps the limit.

// isEnoughFor says whether what the grant left may let in a too, as far as known. Only kinds with
// permits tell how much that is.
func (g *grant) isEnoughFor(a *acquisition) bool { return !g.Sized || int64(a.n) <= g.Free }

// heardLimit ends the waits of the callers that want more than the limit in the answer to the front.
// They would hear of it only at their own attempts, which may be long to come.
func (a *acquisition) heardLimit(g grant) {
	l := a.lock
	if !g.Sized || l.queue.Front() != a {
		return
	}
	m := &l.waiting().limit
	if !m.Heard(g.Limit) {
		return
	}
	for w := a.node.Next(); w != nil; w = w.node.Next() {
		if m.Excludes(w.arrived, w.n) {
			w.hopeless = grant{Answer: kind.Answer{Value: g.Limit}}.never(w.prim)
			wakeUp(w.wake)
		}
	}
	if m.Doubted() {
		l.nudge()
	}
}
