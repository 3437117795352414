package close_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A slowEnd is a context of the caller's own. What is derived from it ends in two steps, with the code of the
// caller's in between: package context calls the stop function when a child is cancelled.
type slowEnd struct {
	context.Context
	done chan struct{}
	stop func()
}

func (c *slowEnd) Done() <-chan struct{} { return c.done }
func (c *slowEnd) Value(key any) any {
	if _, own := key.(*int); own { // package context looks for its own contexts by such a key
		return nil
	}
	return c.Context.Value(key)
}

func (c *slowEnd) AfterFunc(func()) (stop func() bool) {
	return func() bool {
		c.stop()
		return true
	}
}

// Close releases a lock when all contexts of its sections have ended, however long that takes: else another
// owner would be in while a caller still trusts its context.
func TestCloseReleasesBehindTheContexts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, other := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		m := rlock.New(ses, "x")
		slow, goOn := make(chan struct{}), make(chan struct{})
		free := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(free)
		var armed atomic.Bool
		first := &slowEnd{Context: rlock.WithOwner(ctx, "me"), done: make(chan struct{}), stop: func() {
			if armed.CompareAndSwap(true, false) {
				close(slow)
				<-goOn
			}
		}}
		section, _, err := m.Lock(first)
		must(t, err)
		_ = section.Done()
		second, _, err := m.Lock(rlock.WithOwner(ctx, "me"))
		must(t, err)
		armed.Store(true)
		closed := make(chan error, 1)
		go func() { closed <- ses.Close() }()
		locktest.Get(t, slow, 10*time.Second, "the end of the first context")
		if _, h, err := rlock.New(other, "x").Lock(ctx, rlock.Wait(100*time.Millisecond)); err == nil {
			t.Errorf("another owner is in; the context of the second caller: %v", second.Err())
			must(t, h.Unlock())
		}
		free()
		must(t, locktest.Get(t, closed, 10*time.Second, "the end of Close"))
		_, h, err := rlock.New(other, "x").Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
	})
}
