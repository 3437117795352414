package engine

// What the queue of a kind with permits needs to know of sizes: whether what is left is enough
// for the next caller, and which callers ask for more than there can ever be.

// isEnoughFor says whether what the grant left may let in a too, as far as known. Only kinds with
// permits tell how much that is.
func (g *grant) isEnoughFor(a *acquisition) bool { return !g.sized || int64(a.n) <= g.free }

// limit is the most that one request may be for, by the last word from Redis. It is guarded by
// the lock's mutex.
type limit struct {
	known bool
	most  int64 // below 0: anything
	// doubted: a caller that wants more has come since the front asked, and may know of a
	// higher limit.
	doubted bool
	arrived int // how many have queued
	before  int // how many had when the front asked last
}

// allows says whether n is not more than the limit, as far as known.
func (m *limit) allows(n int) bool { return !m.known || m.most < 0 || int64(n) <= m.most }

// arrive numbers a caller that has just queued. If the lock was told of a limit below what it
// wants, the front asks whether that still holds.
func (m *limit) arrive(a *acquisition) {
	m.arrived++
	a.arrived = m.arrived
	if a.prim.Kind().Permits && a.lock.queue.Front() != a && !m.allows(a.n) {
		m.doubted = true
		a.lock.nudge()
	}
}

// asked notes that the front asks now.
func (m *limit) asked() { m.before = m.arrived }

// heardLimit ends the waits of the callers that want more than the limit in the answer to the front.
// They would hear of it only at their own attempts, which may be long to come. It is as true
// for them as for the front if they waited when its attempt was sent; those that came later may
// know of a higher limit.
func (a *acquisition) heardLimit(g grant) {
	l := a.lock
	if !g.sized || l.queue.Front() != a {
		return
	}
	m := &l.waiting().limit
	if m.known && !m.doubted && m.most == g.limit {
		return
	}
	m.known, m.most, m.doubted = true, g.limit, false
	for w := a.node.Next(); w != nil; w = w.node.Next() {
		switch {
		case m.allows(w.n):
		case w.arrived <= m.before:
			w.hopeless = grant{value: g.limit}.never(w.prim)
			wakeUp(w.wake)
		default:
			m.doubted = true
		}
	}
	if m.doubted {
		l.nudge()
	}
}
