package locktest

import (
	"context"
	"sync/atomic"
)

// A Stopped is a context of the caller's own that waits, once it is told to, where it is asked
// whether it has ended, and where a context that was made of it is cancelled.
type Stopped struct {
	context.Context
	InErr, InDone Stop
}

// Err waits if it is told to.
func (c *Stopped) Err() error {
	c.InErr.wait()
	return c.Context.Err()
}

// Done waits if it is told to. A context that was made of this one calls it when it is cancelled.
func (c *Stopped) Done() <-chan struct{} {
	c.InDone.wait()
	return c.Context.Done()
}

// A Stop is where a goroutine may be made to wait.
type Stop struct{ goOn atomic.Pointer[chan struct{}] }

// Until has the next goroutine that gets here wait until the channel is closed.
func (s *Stop) Until(goOn chan struct{}) { s.goOn.Store(&goOn) }

// Reached reports whether the goroutine that was to be stopped has got here.
func (s *Stop) Reached() bool { return s.goOn.Load() == nil }

func (s *Stop) wait() {
	if c := s.goOn.Swap(nil); c != nil {
		<-*c
	}
}

// A LateContext is asked by a caller whether it has ended, and answers late.
type LateContext struct {
	context.Context
	Slow          atomic.Bool
	Asked, Answer chan struct{}
}

// Err answers late once it is told to.
func (c *LateContext) Err() error {
	if c.Slow.CompareAndSwap(true, false) {
		close(c.Asked)
		<-c.Answer
	}
	return c.Context.Err()
}
