package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The reader and the waiting writer die together: others wait for a second at most once the
// lock is free.
func TestDeadWriterAfterExpiry(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a := rwlock.New(dial(t, s, slow), "x")
		ses, p := locktest.DialProxy(t, s, slow)
		c := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 20*time.Second)
		hold(t, ctx, a.RLock, rlock.Lease(5*time.Second))
		goLock(ctx, rwlock.New(ses, "x").Lock)
		redistest.Eventually(t, 5*time.Second, "mark", func() bool { return writersWaiting(t, s, "x") == 1 })
		p.BlackHole(true)
		redistest.Eventually(t, 10*time.Second, "free", func() bool { return pttl(t, s, "x") < 0 })
		free := time.Now()
		_, h := hold(t, ctx, c.RLock)
		// The writer's mark would live for six seconds more. A busy machine takes its time too.
		if waited := time.Since(free); waited > 4*time.Second {
			t.Errorf("a reader waited %v, want a second at most", waited)
		}
		must(t, h.Unlock())
	})
}
