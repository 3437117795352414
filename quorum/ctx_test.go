package quorum_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/quorum"
	"relock/rlock"
)

// A fading context ends when its error is asked for the n-th time.
type fading struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int32
}

func (c *fading) Err() error {
	if c.left.Add(-1) == 0 {
		c.end()
	}
	return c.Context.Err()
}

// The error of a Lock whose ctx has ended matches that of ctx, whenever it ended: also between a
// round that was refused and the sleep before the next.
func TestTheEndOfCtxIsSaidWheneverItIs(t *testing.T) {
	all := cluster(t, 3, mini)
	ctx := within(t, 20*time.Second)
	_, h := lock(t, ctx, quorum.New(dial(t, all, slow()), "x"))
	m := quorum.New(dial(t, all, slow()), "x")
	for what, opts := range map[string][]rlock.LockOption{"Lock": nil, "Wait": {rlock.Wait(time.Hour)}, "Retry": {rlock.Retry(rlock.Linear(time.Millisecond))}} {
		for n := range int32(5) {
			own, end := context.WithCancel(ctx)
			c := &fading{Context: own, end: end}
			c.left.Store(n + 2) // the first look is that before the call
			_, _, err := m.Lock(c, opts...)
			is(t, what, err, rlock.ErrNotAcquired, context.Canceled)
			end()
		}
	}
	must(t, h.Unlock())
}
