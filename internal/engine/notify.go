package engine

import "sync"

// The notifier runs the caller's Logger, and the hooks that concern no call, in a goroutine of
// its own, in order. One that blocks costs its own messages and nothing else: neither the
// watchdog nor Close waits for it.
type notifier struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// maxNotes bounds what is kept for a Logger that blocks; what comes then is dropped.
const maxNotes = 1000

// notify has fn run soon.
func (s *Session) notify(fn func()) {
	n := &s.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == maxNotes {
		return
	}
	n.queue = append(n.queue, fn)
	if !n.running {
		n.running = true
		go n.run()
	}
}

func (n *notifier) run() {
	for {
		n.mu.Lock()
		if len(n.queue) == 0 {
			n.queue, n.running = nil, false
			n.mu.Unlock()
			return
		}
		fn := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		fn()
	}
}
