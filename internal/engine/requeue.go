package engine

// merge makes the waiters of one run those of another that Redis has found them in.
func (l *lock) merge(c, into *claim) {
	for into.run.into != nil {
		into = into.run.into
	}
	r, t := c.run, into.run
	if into.state != asking && into.state != held { // what they have joined is over
		r.place = t.place
		c.retire(over)
		return
	}
	t.waiting += r.waiting
	t.last = max(t.last, r.last)
	r.waiting, r.into = 0, into
	if r.pending || len(r.told) > 0 { // some have left meanwhile
		t.told = append(t.told, r.told...)
		r.told = nil
		if into.state == asking {
			l.line.send(into)
			l.hasten()
		}
	}
	if l.line.tail == c {
		l.line.tail = into
	}
	c.retire(over)
}

// requeue makes a new run of the waiters of one that cannot go on. It gets the old place, before
// all who came later.
func (l *lock) requeue(c *claim) {
	r := c.run
	if r.waiting == 0 || l.state != lockOpen {
		return
	}
	a := l.queue.Front()
	for a != nil && a.standing() != c {
		a = a.node.Next()
	}
	if a == nil {
		return
	}
	next := l.newRun(a, &run{q: r.q, open: r.open, lease: r.lease, last: r.last, waiting: r.waiting, place: max(r.place, 1)})
	r.into, r.waiting = next, 0
	next.run.pending = true
	l.line.pending = append([]*claim{next}, l.line.pending...)
	l.hasten()
}

// keepPlace queues what a run leaves behind before its claim is released, so that nobody comes in
// between. The lock's mutex must be held; it is released meanwhile and held again at the end.
func (l *lock) keepPlace(c *claim) {
	n := l.line
	if n.busy {
		l.requeue(c) // it goes with the next call, which may come too late
		return
	}
	n.busy = true
	l.requeue(c)
	calls := l.nextCalls()
	l.unlock()
	l.s.sendCalls(l.s.releaseContext(l.s.now()), calls)
	l.mu.Lock()
	l.answered(calls)
	n.busy = false
	l.sendPending()
}

// endRun sees to the waiters that a run leaves behind when its claim is retired.
func (l *lock) endRun(c *claim) {
	r := c.run
	if c.state != lostStanding { // else a late grant message would release it under its section
		l.s.fair.remove(r.entry, c)
	}
	if r.overtaken {
		r.overtaken = false
		c.dismiss()
	}
	if l.line.tail == c {
		l.line.tail = nil
	}
	l.requeue(c)
	if !l.gathers() {
		l.hasten()
	}
	for _, told := range r.told {
		close(told)
	}
	r.told = nil
}
