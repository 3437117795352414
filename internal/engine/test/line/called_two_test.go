package line_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Two that are called stand in front, and neither comes: those behind have the lock soon all the same. In a fair line
// the two may be callers of one session that was stopped (scenario 33).
func TestTheSessionBehindTwoCalledOnesThatAreSilentGetsIn(t *testing.T) {
	t.Parallel()
	for kind, sessions := range map[string]int{"plain": 2, "fair": 1} {
		t.Run(kind, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				cfg, mutex := calledConfig, mutexes[kind]
				holder, live := dial(t, s, cfg), dial(t, s, cfg)
				name, ctx := redistest.Name(t), within(t, time.Minute)
				m := mutex(holder, name)
				_, h, err := m.Lock(ctx)
				must(t, err)
				var silent []*rlock.Session
				var proxies []*faulttest.Proxy
				for range sessions {
					ses, p := locktest.DialProxy(t, s, cfg)
					silent, proxies = append(silent, ses), append(proxies, p)
				}
				for i := range 2 {
					locktest.GoLock(mutex(silent[i%sessions], name), rlock.WithOwner(ctx, fmt.Sprint("order-", i)))
					awaitWaiters(t, m, i+1)
					locktest.Stays(t, ctx, time.Millisecond) // in a bubble all would come at the same time
				}
				behind := locktest.GoLock(mutex(live, name), ctx)
				awaitWaiters(t, m, 3)
				locktest.Stays(t, ctx, 100*time.Millisecond) // nothing is on its way any more
				for _, p := range proxies {
					p.BlackHole(true)
				}
				must(t, h.Unlock())
				got := locktest.Get(t, behind, 4*patienceWith[kind]+s.Slack(), "the Lock behind the two")
				must(t, got.Err)
				must(t, got.Hold.Unlock())
			})
		})
	}
}
