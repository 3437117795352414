package life

import "sync"

// A Group counts what goes on, as goroutines, and tells when it is over. In contrast to a [sync.WaitGroup], which
// panics then, the first may begin while somebody waits: a call that Redis does not answer outlives the patience of
// Close, and begins something when it ends. The zero Group is empty.
type Group struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // made by Idle, closed when n is 0
}

// Go runs fn in a goroutine that counts until fn returns.
func (g *Group) Go(fn func()) {
	g.Add(1)
	go func() {
		defer g.Add(-1)
		fn()
	}()
}

// Add adds to the count.
func (g *Group) Add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n += n; g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Count returns the count.
func (g *Group) Count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// Idle returns a channel that is closed when the count is 0, now or the next time.
func (g *Group) Idle() <-chan struct{} {
	defer g.Add(0) // closes it if nothing counts now
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.idle
}

// Wait waits until the count is 0. It may have risen again by the time that Wait returns.
func (g *Group) Wait() { <-g.Idle() }
