package account

// inflight serialises the commands that change the account: one at a time is under way.
type inflight struct {
	Busy bool          // a command is awaited, or about to be sent; of a claim that asks, also between two attempts
	free chan struct{} // closed when the state has changed; nil if no caller waits
}

// Freed returns a channel that is closed when the state has changed, so that waiting callers check it again.
func (t *inflight) Freed() <-chan struct{} {
	if t.free == nil {
		t.free = make(chan struct{})
	}
	return t.free
}

// Awaited reports whether a caller waits for the state to change.
func (t *inflight) Awaited() bool { return t.free != nil }

// Answered ends the command that is awaited: it was answered or given up.
func (t *inflight) Answered() {
	t.Busy = false
	t.Wake()
}

// Wake has the waiting callers check the state again.
func (t *inflight) Wake() {
	if t.free != nil {
		close(t.free)
		t.free = nil
	}
}
