package line_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// A session that waits behind the first of a line is let in by a message, however long its poll floor is and
// however long the lock was held: Redis keeps the line for as long.
func TestALineOutlivesALongPollFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		cfg := rlock.Config{PollFloor: time.Hour, Lease: 2 * time.Hour}
		var all [3]*rlock.Session
		for i := range all {
			all[i] = locktest.DialBubble(t, m, cfg)
			defer all[i].Close()
		}
		ctx := t.Context()
		_, h, err := rlock.New(all[0], "x").Lock(ctx)
		must(t, err)
		first := locktest.GoLock(rlock.New(all[1], "x"), ctx)
		time.Sleep(time.Millisecond) // entries of one instant stand in any order
		synctest.Wait()
		second := locktest.GoLock(rlock.New(all[2], "x"), ctx)
		synctest.Wait()
		time.Sleep(11 * time.Minute)
		began := time.Now()
		must(t, h.Unlock())
		for _, next := range []<-chan locktest.Locked{first, second} {
			got := <-next
			must(t, got.Err)
			must(t, got.Hold.Unlock())
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("both were in %v after the release", d)
		}
	})
}
