package locktest

import (
	"context"
	"sync"
)

// A Crew is a number of goroutines that take turns with the lock until they are told to stop,
// each time doing work inside.
type Crew struct {
	wg   sync.WaitGroup
	stop context.CancelFunc
	ctx  context.Context
}

// End stops the crew and waits for it.
func (c *Crew) End() {
	c.stop()
	c.wg.Wait()
}
