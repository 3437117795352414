package pubsub

import "time"

// Silence sets after how long without an answer a server is given up.
func Silence(d time.Duration) Option {
	return func(h *Hub) { h.silence = d }
}

// Channels is the number of channels that the hub keeps, in whatever state.
func (h *Hub) Channels() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.channels)
}

// Failures is how often in a row the only node could not be connected to.
func (h *Hub) Failures() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.nodes[""]; n != nil {
		return n.fails
	}
	return 0
}
