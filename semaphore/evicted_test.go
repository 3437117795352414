package semaphore_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Permits whose record was deleted or evicted are lost, and missing from the limit, which stands nowhere
// else, until it is set anew. A counter that was deleted is made anew, less what is taken.
func TestSetLimitMendsWhatWasEvicted(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, slow()), within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 3)
		_, p, err := m.Acquire(ctx, 2)
		must(t, err)
		must(t, s.Do(t, "DEL", "{x}:timeout").Error())
		is(t, "Release of lost permits", p.Release(), rlock.ErrLost)
		available(t, ctx, m, 1)
		_, _, err = m.Acquire(ctx, 2)
		is(t, "more than are left", err, semaphore.ErrLimit)
		must(t, m.SetLimit(ctx, 3))
		_, p, err = m.Acquire(ctx, 2)
		must(t, err)

		must(t, s.Do(t, "DEL", "x").Error())
		available(t, ctx, m, 1)
		_, other, err := m.TryAcquire(ctx, 1)
		must(t, err)
		must(t, p.Release())
		must(t, other.Release())
		available(t, ctx, m, 3)
	})
}
