package claim_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Wherever a context panics, or ends the goroutine, in a nested Lock, nothing is left of that call: the section stayed open behind
// its own Unlock, which waited for that call's command, and the lock was renewed for good.
func TestAContextThatEndsTheGoroutineOfANestedLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, ses := within(t, time.Minute), dial(t, s, rlock.Config{})
		m := rlock.New(ses, redistest.Name(t))
		for what, outer := range map[string]context.Context{"through the section": ctx, "by name": rlock.WithOwner(ctx, "me")} {
			for how, end := range endings {
				var left atomic.Int64
				n, got := int64(0), false
				for !got {
					n++
					section, h, err := m.Lock(outer)
					must(t, err)
					inner := section
					if outer != ctx {
						inner = outer
					}
					got = returns(func() {
						own, cancel := context.WithCancel(inner)
						defer cancel()
						left.Store(n)
						_, h, err := m.Lock(ending{own, &left, end})
						left.Store(0)
						must(t, err)
						must(t, h.Unlock())
					})
					must(t, section.Err())
					must(t, h.Unlock())
					noCalls(t, ses, what+", "+how)
				}
				if n < 5 {
					t.Errorf("%s, %s: the context was asked %d times", what, how, n-1)
				}
			}
		}
	})
}
