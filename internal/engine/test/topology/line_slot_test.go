package topology_test

import (
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// In a slot that stays half moved a plain lock is handed over by message, as before and after
// (scenario 45): locks are made at the target, and its waiters listened at the source.
func TestAHalfMovedSlotHandsPlainLocksOverByMessage(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	c := redistest.NewCluster(t)
	ctx := within(t, time.Minute)
	name := locktest.NameOn(t, c, c.Addrs[0])
	slow := locktest.Slow()
	slow.PollFloor = 20 * time.Second // whoever looks by the clock comes too late
	var sessions []*rlock.Session
	for range 3 {
		sessions = append(sessions, locktest.DialOption(t, c.Option(), slow))
	}
	handOvers := func() time.Duration {
		begun := time.Now()
		var wg sync.WaitGroup
		for _, ses := range sessions {
			wg.Go(func() {
				for range 10 {
					_, h, err := rlock.New(ses, name).Lock(ctx)
					if err == nil {
						time.Sleep(time.Millisecond) // so that the others wait
						err = h.Unlock()
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return time.Since(begun)
	}
	handOvers()
	m := topoBegin(t, c, redistest.Slot(name), c.Addrs[1])
	midway := handOvers()
	m.end(t)
	after := handOvers()
	t.Logf("midway %v, afterwards %v", midway, after)
	if midway > 10*time.Second || after > 10*time.Second {
		t.Errorf("30 hand-overs took %v midway and %v afterwards: some were not heard of", midway, after)
	}
}
