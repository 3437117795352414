package waiting

// A Member is a waiter's position in a run. Of and Kind must be set before it arrives.
type Member[R, W any] struct {
	Of     *W
	Kind   any        // what those have in common that may stand in one run; nil: it stands alone
	Run    *Run[R, W] // nil: in none
	number int64      // among the session's waiters for the lock
	node   Node[Member[R, W]]
}

// First returns the run's first waiter, nil if it has none.
func (r *Run[R, W]) First() *Member[R, W] {
	if r.members.First == nil {
		return nil
	}
	return r.members.First.Of
}

// Remove takes a waiter out of its run, for it is served, or Redis need not know that it leaves.
func (r *Run[R, W]) Remove(m *Member[R, W]) {
	r.members.Remove(&m.node)
	r.Waiting--
	m.Run = nil
}

// push puts a waiter at the end of a run.
func (r *Run[R, W]) push(m *Member[R, W]) {
	m.Run, m.node.Of = r, m
	r.members.Push(&m.node)
	r.Waiting++
}

// moveTo makes the waiters of a run those of another, behind those that it has.
func (r *Run[R, W]) moveTo(t *Run[R, W]) {
	for m := r.First(); m != nil; m = r.First() {
		r.Remove(m)
		t.push(m)
	}
	t.last = max(t.last, r.last)
}

// Leave removes a waiter that gives up from its run; inFlight says that an attempt for the run is under
// way. The channel is closed when Redis has been informed; it is nil if Redis need not know. left is as for Answered.
func (m *Member[R, W]) Leave(inFlight bool) (acked <-chan struct{}, act ClaimAction, left *R) {
	r := m.Run
	r.Remove(m)
	switch {
	case r.phase > queued, r.phase == gathering && r.Waiting > 0:
		return nil, KeepClaim, nil
	case r.Waiting > 0:
		r.AskNow() // so that Redis counts fewer
	case inFlight, r.joiner != nil:
		// A release could run before the attempt that is under way, or remove waiters that have just joined.
	case r.phase == gathering:
		return nil, DropClaim, nil
	default:
		act = ReleaseClaim
		if t := r.joins; t != nil && t.Waiting > 0 {
			t.AskNow() // Redis may have counted those that were about to join it
		}
		left = r.part()
	}
	gone := make(chan struct{})
	r.acks = append(r.acks, gone)
	return gone, act, left
}
