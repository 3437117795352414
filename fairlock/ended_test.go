package fairlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The context of a caller ends as soon as another session's release has given it the lock. Its section is not renewed from
// then on, and lasts for a lease all the same: it was lost when the lease of the grant was over.
func TestAGrantWhoseCallersContextEndsLastsForALease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		first := lock(t, ctx, fairlock.New(dial(t, s, rlock.Config{}), "x"))
		waiting, end := context.WithCancel(ctx)
		next := goQueued(t, waiting, fairlock.New(dial(t, s, rlock.Config{}), "x"), 1)
		unlock(t, first)
		l := granted(t, next, patience, "the next")
		end()
		pause(2 * time.Second) // that of the grant is 1.25 s
		unlock(t, l)
	})
}
