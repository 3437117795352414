package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Readers of Redisson that died, or whose lease is over, are nobody: when the last of ours
// leaves, writers of either side come in, and need not wait for the lease of the lock.
func TestLastReaderLeavesNoDeadRedissonReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		j, dead := newJava(t, s, "x", 7), newJava(t, s, "x", 8)
		over := func() {
			t.Helper()
			redistest.Eventually(t, 5*time.Second, "Java's reader to be over", func() bool {
				n, err := s.Do(t, "EXISTS", "{x}:"+dead.owner+":rwlock_timeout:1").AsInt64()
				return err == nil && n == 0
			})
		}

		// A Java writer waits: it hears that the lock is free, and it is.
		_, r := hold(t, ctx, m.RLock, rlock.Lease(time.Minute))
		dead.wants(javaReadLock, 50*time.Millisecond, "nil")
		if got := j.run(javaWriteLock, 30*time.Second); got == "nil" {
			t.Fatal("a Java writer came in beside our reader")
		}
		heard, stop := messages(t, s, "x")
		over()
		must(t, r.Unlock())
		if msg := locktest.Get(t, heard, 5*time.Second, "the message"); msg != "0" {
			t.Errorf("message %q, want 0", msg)
		}
		stop()
		j.wants(javaWriteLock, 30*time.Second, "nil")
		j.wants(javaWriteUnlock, 30*time.Second, "1")

		// A writer of ours waits: it is told to look.
		_, r = hold(t, ctx, m.RLock, rlock.Lease(time.Minute))
		dead.wants(javaReadLock, 50*time.Millisecond, "nil")
		waiting := goLock(ctx, w.Lock)
		redistest.Eventually(t, 5*time.Second, "the writer in the line", func() bool { return writersWaiting(t, s, "x") == 1 })
		listening(t, s, "x", 1)
		over()
		must(t, r.Unlock())
		must(t, in(t, waiting, 10*time.Second, "our writer").hold.Unlock())

		// One that lives keeps them out, and its lease is the lock's.
		_, r = hold(t, ctx, m.RLock, rlock.Lease(time.Minute))
		j.wants(javaReadLock, 20*time.Second, "nil")
		dead.wants(javaReadLock, 50*time.Millisecond, "nil")
		over()
		must(t, r.Unlock())
		refused(t, ctx, w.TryLock, "a writer of ours beside a Java reader")
		if got := pttl(t, s, "x"); got > 20*time.Second || got < 10*time.Second {
			t.Errorf("the lock lives for %v, Java's reader for 20s", got)
		}
		j.wants(javaReadUnlock, 30*time.Second, "1")
		nothingLeft(t, s)
	})
}
