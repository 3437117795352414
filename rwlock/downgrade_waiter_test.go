package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A writer with a read hold gives back the write side, and the read hold right behind it: the next writer of its
// session is woken by the first, and finds its attempt under way with the second. It gets in all the same, also where
// its session listens and so expects a message of every release.
func TestAWriterBehindADowngradeThatEndsAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, ses, other := within(t, time.Minute), dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		for range locktest.Cycles(t, s, 100) {
			name := redistest.Name(t)
			m := rwlock.New(ses, name)
			_, reader := hold(t, ctx, rwlock.New(other, name).RLock)
			first, second := goLock(ctx, m.Lock), goLock(ctx, m.Lock)
			redistest.Eventually(t, 10*time.Second, "two writers in the queue", func() bool { return locktest.SideWaitersOf(ses, name) == 2 })
			listening(t, s, name, 1)
			must(t, reader.Unlock())
			var writer locked
			select {
			case writer = <-first:
				first = second
			case writer = <-second:
			}
			must(t, writer.err)
			_, nested := hold(t, writer.ctx, m.RLock)
			must(t, writer.hold.Unlock())
			must(t, nested.Unlock())
			must(t, in(t, first, 20*time.Second, "the next writer").hold.Unlock())
		}
	})
}
