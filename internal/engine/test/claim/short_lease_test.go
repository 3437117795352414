package claim_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/locktrace"
	"relock/rlock"
)

// Redis is asked in the middle of a fixed lease whether the lock still stands, but not if the lease is
// so short that the answer would hardly come before its end.
func TestAShortFixedLeaseIsNotAskedAbout(t *testing.T) {
	for lease, want := range map[time.Duration]bool{90 * time.Millisecond: false, 300 * time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			m := miniredis.NewMiniRedis()
			m.ClockTTL(true)
			defer m.Close()
			var asked atomic.Bool
			trace := &rlock.Trace{Renewed: func(locktrace.Renewed) { asked.Store(true) }}
			ses := locktest.DialBubble(t, m, rlock.Config{Trace: trace})
			defer ses.Close()
			_, h, err := rlock.New(ses, "x").Lock(context.Background(), rlock.Lease(lease))
			must(t, err)
			time.Sleep(lease * 8 / 10)
			synctest.Wait()
			if asked.Load() != want {
				t.Errorf("lease of %v: Redis was asked: %v, want %v", lease, asked.Load(), want)
			}
			must(t, h.Unlock())
		})
	}
}
