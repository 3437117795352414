package engine

import (
	"time"

	"relock/locktrace"
)

// endUnleased is the end of an acquisition of a kind without leases that has been granted by an attempt that was sent at
// the given time, or that was let in with another one. The lock's mutex must be held.
//
// Where a grant takes nothing its answer is good for all callers that waited already when it was asked for. Each of them
// asked by itself otherwise, one after the other: the last of a thousand would wait for as many round trips.
func (a *acquisition) endUnleased(sent time.Duration) {
	if a.letIn {
		a.traced.Grant = locktrace.GrantMemory
		a.giveUp()
		return
	}
	a.claim.retire(finished)
	a.claim.endRequest()
	if !a.kind.Opens {
		return
	}
	for w := range a.lock.queue.All() {
		if w != a && w.start < sent {
			w.letIn = true
			w.wake.Up()
		}
	}
}
