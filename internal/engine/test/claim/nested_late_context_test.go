package claim_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// A tardyContext is a context of the caller's own whose Done takes its time, at one of its calls.
type tardyContext struct {
	context.Context
	calls atomic.Int32
	at    int32
	late  func()
}

func (c *tardyContext) Done() <-chan struct{} {
	if c.calls.Add(1) == c.at {
		c.late()
	}
	return c.Context.Done()
}

// A nested hold may end while the caller's own context keeps its Lock from making the hold's context: its
// lease runs out, or the session closes. Then that context has ended when it is made; with -race, what
// ends it meanwhile does not read what is just being written.
func TestANestedHoldThatEndsBeforeItsContextIsMade(t *testing.T) {
	const lease = 50 * time.Millisecond
	for what, end := range map[string]func(*rlock.Session){
		"its lease runs out": func(*rlock.Session) { time.Sleep(4 * lease) },
		"the session closes": func(ses *rlock.Session) { go ses.Close(); time.Sleep(lease / 2) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := miniredis.NewMiniRedis()
				defer m.Close()
				nested := 0
				for at := range int32(8) { // which call comes when is ours to change
					ses := locktest.DialBubble(t, m, rlock.Config{})
					mutex := rlock.New(ses, "x")
					section, _, err := mutex.Lock(t.Context())
					must(t, err)
					ctx, cancel := context.WithCancel(section)
					late := &tardyContext{Context: ctx, at: at + 1, late: func() { end(ses) }}
					own, _, err := mutex.Lock(late, rlock.Lease(lease))
					if err == nil {
						nested++
						time.Sleep(4 * lease)
						if own.Err() == nil || section.Err() == nil && context.Cause(own) != rlock.ErrLost {
							t.Errorf("late at call %d: the context of the hold: %v, cause %v", at+1, own.Err(), context.Cause(own))
						}
					}
					cancel()
					must(t, ses.Close())
				}
				if nested == 0 {
					t.Error("no nested Lock came to a context")
				}
			})
		})
	}
}
