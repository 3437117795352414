package claim_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
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

// A context does so between the attempts of a TryLock that Redis does not serve: nothing is left of that call, and the session
// can forget the name.
func TestAContextThatEndsATryLockInAnOutage(t *testing.T) {
	for how, end := range endings {
		synctest.Test(t, func(t *testing.T) {
			mini := miniredis.NewMiniRedis()
			mini.ClockTTL(true)
			defer mini.Close()
			ses := locktest.DialBubble(t, mini, rlock.Config{})
			defer ses.Close()
			ctx, m := within(t, time.Hour), rlock.New(ses, "x")
			var left atomic.Int64
			n, got := int64(0), false
			for ; !got; n++ {
				mini.SetError("LOADING as after a restart")
				got = returns(func() {
					left.Store(n + 1)
					_, _, err := m.TryLock(ending{ctx, &left, end})
					left.Store(0)
					locktest.Is(t, "TryLock", err, rlock.ErrUnavailable)
				})
				mini.SetError("")
				noCalls(t, ses, how)
				_, h, err := m.Lock(ctx)
				must(t, err)
				must(t, h.Unlock())
			}
			if n < 6 {
				t.Errorf("%s: the context was asked %d times", how, n)
			}
		})
	}
}
