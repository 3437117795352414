package line_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A thousand callers of one session want a lock with a lease of their own, so none of them can be handed the lock of
// another, or be granted it: each is called, and asks. One caller of another session, which waits again and again,
// has every second turn all the same, for a session has one entry in the line (scenario 48).
func TestAThousandCallersWithLeasesTakeTurnsWithOneOfAnotherSession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		callers := 1000
		if !s.IsMini() {
			callers = 200
		}
		cfg := rlock.Config{PollFloor: time.Hour}
		many, one := dial(t, s, cfg), dial(t, s, cfg)
		name, ctx := redistest.Name(t), within(t, 5*time.Minute)
		_, block, err := rlock.New(dial(t, s, cfg), name).Lock(ctx)
		must(t, err)
		var mu sync.Mutex
		var order []byte // who was in
		turn := func(who byte, ses *rlock.Session, opts ...rlock.LockOption) bool {
			_, h, err := rlock.New(ses, name).Lock(ctx, opts...)
			if err != nil {
				t.Error(err)
				return false
			}
			mu.Lock()
			order = append(order, who)
			mu.Unlock()
			time.Sleep(time.Millisecond) // the work
			if err := h.Unlock(); err != nil {
				t.Error(err)
				return false
			}
			return true
		}
		var all, other sync.WaitGroup
		for range callers {
			all.Go(func() { turn('m', many, rlock.Lease(5*time.Minute)) })
		}
		redistest.Eventually(t, 20*time.Second, "all to wait", func() bool { return locktest.WaitersOf(many, name) == callers })
		rest, over := context.WithCancel(ctx)
		defer over()
		other.Go(func() {
			for rest.Err() == nil && turn('o', one) {
			}
		})
		redistest.Eventually(t, 20*time.Second, "the other to wait", func() bool { return locktest.WaitersOf(one, name) == 1 })
		locktest.AwaitInLine(t, s, name, one)
		must(t, block.Unlock())
		all.Wait()
		over()
		other.Wait()
		checkTurns(t, order, callers, s.IsMini())
		locktest.NothingLeft(t, s, many, one)
	})
}

// checkTurns checks the order in which many callers of one session, and one of another, have had a lock. On a real
// clock the other may come back late now and then.
func checkTurns(t *testing.T, order []byte, callers int, strict bool) {
	t.Helper()
	many, one, row, longest := 0, 0, 0, 0
	for _, who := range order {
		if who == 'o' {
			one, row = one+1, 0
			continue
		}
		many, row = many+1, row+1
		longest = max(longest, row)
	}
	t.Logf("%d turns of the many, %d of the one, the many had it at most %d times in a row", many, one, longest)
	least := many / 2
	if strict {
		least = many * 95 / 100
	}
	if many != callers || one < least || strict && longest > 3 {
		t.Errorf("of %d callers %d had the lock, the one %d times; at most %d in a row before it: %.60s", callers, many, one, longest, order)
	}
}
