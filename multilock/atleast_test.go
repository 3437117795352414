package multilock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
	"relock/semaphore"
)

// With AtLeast all of the locks stand from when all are held, and none of them before: what a Lock
// gives back, since it cannot have the others, is free, for others and for its own next round. So it
// is with Retry, and for a lock that the context holds already.
func TestAtLeast(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		a, b := rlock.New(ses, "a"), rlock.New(ses, "b")
		theirA, theirB := rlock.New(other, "a"), rlock.New(other, "b")
		m := multilock.New(a, b)
		series := rlock.Retry(rlock.Limit(rlock.Linear(time.Millisecond), 3))
		for what, opts := range map[string][]rlock.LockOption{
			"one attempt": {rlock.AtLeast(time.Hour)},
			"Retry":       {rlock.AtLeast(time.Hour), series},
			"Lease":       {rlock.AtLeast(time.Hour), series, rlock.Lease(time.Hour)},
		} {
			_, busy, err := theirB.Lock(ctx)
			must(t, err)
			_, _, err = m.TryLock(ctx, opts...)
			is(t, what, err, rlock.ErrNotAcquired)
			free(t, ctx, theirA)
			must(t, busy.Unlock())
			_, h, err := m.TryLock(ctx, opts...)
			must(t, err)
			must(t, h.Unlock())
			held(t, ctx, a, b, theirA, theirB)
			for _, l := range []*rlock.Mutex{theirA, theirB} {
				if stood, err := l.ForceUnlock(ctx); !stood || err != nil {
					t.Errorf("%s: %s: %v, %v", what, l.Name(), stood, err)
				}
			}
		}
		section, outer, err := a.Lock(ctx)
		must(t, err)
		_, h, err := m.Lock(section, rlock.AtLeast(time.Hour))
		must(t, err)
		must(t, h.Unlock())
		must(t, outer.Unlock())
		held(t, ctx, theirA, theirB)
		some := multilock.New(rlock.New(ses, "c"), multilock.Permits(semaphore.New(ses, "permits", 1), 1))
		_, _, err = some.TryLock(ctx, rlock.AtLeast(time.Hour), series)
		is(t, "permits", err, rlock.ErrArgument)
		free(t, ctx, rlock.New(other, "c"))
	})
}
