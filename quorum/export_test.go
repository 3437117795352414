package quorum

import "time"

// AcquireSource is the Lua of the script, for the external tests.
var AcquireSource = acquireScript.Source()

// BoundRelease bounds for how long the release of h waits for all Redises.
func (h *Hold) BoundRelease(d time.Duration) {
	x := h.section
	x.mu.Lock()
	defer x.mu.Unlock()
	x.m = &Mutex{nodes: x.m.nodes, need: x.m.need, bound: d}
}
