package rlock

// What the line of a Sized primitive needs to know of sizes: whether what is left is enough
// for the next one, and who asks for more than there can ever be.

// isEnoughFor says whether what the grant left may let in w, too. Only a Sized primitive
// tells how much that is.
func (g *grant) isEnoughFor(w *waiter) bool {
	return !g.sized || w == nil || w.size <= g.free
}

// limit is the most that one may ask for, by the last word from Redis.
type limit struct {
	known bool
	most  int64 // below 0: anything
	// doubted: somebody who wants more has come since the front asked, and may know of a
	// higher one.
	doubted bool
	came    int // how many have queued up
}

// allows says whether size is not more than the limit, as far as known.
func (m *limit) allows(size int64) bool { return !m.known || m.most < 0 || size <= m.most }

// standBehind is for who has just queued up. If the line was told of a limit below what he
// wants, whoever is in front asks whether that still holds. Session.mu must be held.
func (a *acquisition) standBehind() {
	a.line.limit.came++
	a.w.number = a.line.limit.came
	p, ok := a.p.(Sized)
	if !ok {
		return
	}
	a.w.size = p.Size()
	if l := a.line; l.front != &a.w && !l.limit.allows(a.w.size) {
		l.limit.doubted = true
		l.nudge()
	}
}

// heardLimit ends the waits of those who want more than the limit in the answer to the
// front. They would hear of it only at their own attempts, which may be long to come. It is
// as true for them as for the front if they waited when its attempt was sent; those who
// came later may know of a higher limit.
func (a *acquisition) heardLimit(g grant) {
	if !g.sized || a.line == nil {
		return
	}
	s := a.s
	s.mu.Lock()
	defer s.unlock()
	l := a.line
	m := &l.limit
	if l.front != &a.w || m.known && !m.doubted && m.most == g.limit {
		return
	}
	m.known, m.most, m.doubted = true, g.limit, false
	for w := a.w.next; w != nil; w = w.next {
		switch {
		case m.allows(w.size):
		case w.number <= a.came:
			w.a.t.cancel(&tooMuch{grant{value: g.limit}.never(w.a.p)})
		default:
			m.doubted = true
		}
	}
	if m.doubted {
		l.nudge()
	}
}

// tooMuch is the cause with which a wait ends that is hopeless.
type tooMuch struct{ err error }

func (e *tooMuch) Error() string { return e.err.Error() }
