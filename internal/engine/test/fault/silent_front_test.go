package fault_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// The context of a waiter ends while its first attempt is on its way. Redis has answered the waiter
// before it in the queue, so that this is no sign of an outage.
func TestAWaiterThatLeavesDuringItsFirstAttemptSeesNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		other, ses := locktest.DialBubble(t, m, rlock.Config{}), locktest.DialBubble(t, m, rlock.Config{})
		defer other.Close()
		defer ses.Close()
		_, h, err := rlock.New(other, "x").Lock(context.Background())
		must(t, err)

		ctx, leave := context.WithCancel(context.Background())
		first := locktest.GoLock(rlock.New(ses, "x"), ctx)
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		second := locktest.GoLock(rlock.New(ses, "x"), ctx)
		synctest.Wait()
		var silent atomic.Bool
		sent, goOn := make(chan struct{}), make(chan struct{})
		m.Server().SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
			if cmd == "EVALSHA" && silent.CompareAndSwap(true, false) {
				close(sent)
				<-goOn
			}
			return false
		})
		silent.Store(true)
		leave()
		locktest.Is(t, "the first", (<-first).Err, context.Canceled)
		<-sent
		cancel()
		synctest.Wait()
		got := <-second
		locktest.Is(t, "the second", got.Err, rlock.ErrNotAcquired, context.Canceled)
		if errors.Is(got.Err, rlock.ErrUnavailable) {
			t.Errorf("the second: %v, although Redis has answered all along", got.Err)
		}
		close(goOn)
		time.Sleep(time.Second)
		must(t, h.Unlock())
	})
}
