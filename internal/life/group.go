package life

import "sync"

// A Group counts goroutines. In contrast to a [sync.WaitGroup], which panics then, its first goroutine
// may begin while somebody waits: a call that Redis does not answer outlives the patience of Close, and
// begins something when it ends. The zero Group is empty.
type Group struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // made by Wait, closed when n is 0
}

// Go runs fn in a goroutine that counts until fn returns.
func (g *Group) Go(fn func()) {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
	go func() {
		defer g.done()
		fn()
	}()
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

// Wait waits until there is no goroutine. There may be one again when it returns.
func (g *Group) Wait() {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return
	}
	if g.none == nil {
		g.none = make(chan struct{})
	}
	none := g.none
	g.mu.Unlock()
	<-none
}
