package fault_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A server that a script of somebody else's keeps busy refuses to unsubscribe, at which the client panics in
// a goroutine of its own. The session does not send that, or leaves the connection in time.
func TestUnsubscribeWhileRedisIsBusy(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	for _, name := range []string{"before it is sent", "while it is on its way"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			must(t, s.Do(t, "CONFIG", "SET", "lua-time-limit", "1").Error())
			trace, waiting := locktest.Waiting()
			ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: trace})
			ctx := within(t, time.Minute)
			m := rlock.New(ses, "x")
			_, h, err := rlock.New(dial(t, s, rlock.Config{}), "x").Lock(ctx)
			must(t, err)
			next := locktest.GoLock(m, ctx)
			locktest.Get(t, waiting, 10*time.Second, "the waiter")
			redistest.Eventually(t, 10*time.Second, "the waiter to listen", func() bool { return len(s.Channels(t)) == 3 })
			first := faulttest.Is("PING")
			if name != "before it is sent" {
				first = faulttest.Is("UNSUBSCRIBE")
			}
			must(t, h.Unlock())
			got := locktest.Get(t, next, 10*time.Second, "Lock")
			must(t, got.Err)
			sent, release := p.HoldRequest(first)
			defer release()
			locktest.Get(t, sent, 10*time.Second, "what leads to the end of the subscription")
			slow, ended := s.Client(t), make(chan struct{})
			go func() {
				defer close(ended)
				_ = slow.Do(ctx, slow.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
			}()
			redistest.Eventually(t, 10*time.Second, "the server to be busy", func() bool {
				err := s.Do(t, "PING").Error()
				return err != nil && strings.HasPrefix(err.Error(), "BUSY")
			})
			release()
			answered := p.Count()
			redistest.Eventually(t, 10*time.Second, "the session to have an answer, and to go on", func() bool {
				return p.Count() > answered || s.Do(t, "SCRIPT", "KILL").Error() == nil
			})
			_ = s.Do(t, "SCRIPT", "KILL").Error() // fails if it was killed before
			<-ended
			must(t, got.Hold.Unlock())
			must(t, m.Do(ctx, func(ctx context.Context) error { return nil }))
			redistest.Eventually(t, 10*time.Second, "no channel but the sessions' own", func() bool {
				for _, c := range s.Channels(t) {
					if !strings.HasPrefix(c, "relock_session:") {
						return false
					}
				}
				return true
			})
		})
	}
}
