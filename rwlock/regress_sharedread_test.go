package rwlock_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Java renews the timeout keys of its readers, and knows nothing else. So one whose owner a Go service has shared stays in
// when that has unlocked, or has died, and its lease is over: for writers, and for a Go service that shares the owner anew.
func TestJavaReaderOutlivesAGoReaderOfItsOwner(t *testing.T) {
	for _, javaFirst := range []bool{true, false} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("java first %t, dies %t", javaFirst, dies), func(t *testing.T) {
				redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
					lease := s.Slowed(300 * time.Millisecond)
					m, w := rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x"), rwlock.New(dial(t, s, slow), "x")
					ctx := within(t, 30*time.Second)
					j := newJava(t, s, "x", 7)
					me := rlock.WithOwner(ctx, j.owner)
					if javaFirst {
						j.wants(javaReadLock, 20*time.Second, "nil")
					}
					_, r := hold(t, me, m.RLock)
					left := "1"
					if !javaFirst {
						j.wants(javaReadLock, 20*time.Second, "nil")
					}
					time.Sleep(lease) // it is renewed
					if dies {
						r.Abandon()
						left = "2"
					} else {
						must(t, r.Unlock())
					}
					time.Sleep(lease + lease/2)
					refused(t, ctx, w.TryLock, "a writer of ours beside a Java reader")
					if got := field(t, s, "x", j.owner); got != left {
						t.Errorf("the owner has %q of %s holds", got, left)
					}
					_, again := hold(t, me, w.RLock)
					must(t, again.Unlock())
					refused(t, ctx, w.TryLock, "a writer of ours beside a Java reader, later")
					livesOn(t, s)
				})
			})
		}
	}
}
