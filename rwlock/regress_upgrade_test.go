package rwlock_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A Java reader whose lease is over holds nothing, though another reader keeps its field alive: the writer of that owner
// waits for the other one alone, and is not told that it would upgrade. While one of its holds lives, it is.
func TestWriterOfADeadJavaReaderWaits(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		j := newJava(t, s, "x", 7)
		me := rlock.WithOwner(ctx, j.owner)
		_, other := hold(t, ctx, m.RLock, rlock.Lease(time.Minute))
		j.wants(javaReadLock, 50*time.Millisecond, "nil")
		j.wants(javaReadLock, 2*time.Second, "nil")
		over := func(i int) {
			redistest.Eventually(t, 10*time.Second, "a hold of Java's to be over", func() bool {
				n, err := s.Do(t, "EXISTS", fmt.Sprintf("{x}:%s:rwlock_timeout:%d", j.owner, i)).AsInt64()
				return err == nil && n == 0
			})
		}
		over(1)
		_, _, err := w.TryLock(me)
		is(t, "one hold of the owner lives", err, rwlock.ErrUpgrade)
		over(2)
		_, _, err = w.TryLock(me)
		is(t, "a writer beside another reader", err, rlock.ErrNotAcquired)
		waiting := goLock(me, w.Lock)
		redistest.Eventually(t, 5*time.Second, "the writer in the line", func() bool { return writersWaiting(t, s, "x") == 1 })
		must(t, other.Unlock())
		must(t, in(t, waiting, 10*time.Second, "the writer").hold.Unlock())
		nothingLeft(t, s)
	})
}
