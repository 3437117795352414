package account

// A turn is who may send a command that changes the account: one at a time is awaited.
type turn struct {
	busy bool
	free chan struct{} // closed when others may look again; nil if none waits
}

// Sending notes that a command is about to be sent and awaited.
func (t *turn) Sending() { t.busy = true }

// Busy reports whether a command is awaited; of a claim that asks, also at each refusal.
func (t *turn) Busy() bool { return t.busy }

// Freed returns what is closed when those who wait may look again.
func (t *turn) Freed() <-chan struct{} {
	if t.free == nil {
		t.free = make(chan struct{})
	}
	return t.free
}

// Awaited reports whether somebody waits.
func (t *turn) Awaited() bool { return t.free != nil }

// Answered ends the command that is awaited: it was answered or given up.
func (t *turn) Answered() {
	t.busy = false
	t.Wake()
}

// Wake has those who wait look again.
func (t *turn) Wake() {
	if t.free != nil {
		close(t.free)
		t.free = nil
	}
}
