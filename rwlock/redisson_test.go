package rwlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Java's readers and ours hold together, and neither's unlock touches the other's hold, at
// any depth. The holds of a named owner are counted in Redis, nested ones too.
func TestRedissonReadersAndOursShare(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 30*time.Second), "me")
		j := newJava(t, s, "x", 7)

		// Java comes and goes while we hold twice.
		section, r1 := hold(t, ctx, m.RLock)
		_, r2 := hold(t, section, m.RLock)
		for i := 1; i <= 2; i++ {
			if v, _ := s.Do(t, "GET", fmt.Sprintf("{x}:%s:rwlock_timeout:%d", r1.Owner(), i)).ToString(); v != "1" {
				t.Errorf("timeout key %d is %q", i, v)
			}
		}
		j.wants(javaReadLock, 30*time.Second, "nil")
		j.wants(javaReadLock, 30*time.Second, "nil")
		j.wants(javaReadUnlock, 30*time.Second, "0")
		j.wants(javaReadUnlock, 30*time.Second, "0")
		if got := field(t, s, "x", r1.Owner()); got != "2" {
			t.Fatalf("Java's unlock left us %q of 2 holds", got)
		}
		must(t, r2.Unlock())
		j.wants(javaReadLock, 30*time.Second, "nil")
		j.wants(javaReadUnlock, 30*time.Second, "0")
		if got := field(t, s, "x", r1.Owner()); got != "1" || section.Err() != nil {
			t.Fatalf("Java's unlock left us %q of 1 hold", got)
		}

		// We come and go while Java holds.
		j.wants(javaReadLock, 30*time.Second, "nil")
		must(t, r1.Unlock())
		_, r3 := hold(t, ctx, m.RLock)
		must(t, r3.Unlock())
		if got := field(t, s, "x", j.owner); got != "1" {
			t.Fatalf("our unlock left Java %q of 1 hold", got)
		}
		j.wants(javaReadUnlock, 30*time.Second, "1")
		nothingLeft(t, s)
	})
}

// Java's writers and ours keep each other out, and readers of the other kind; each is
// woken by the other's release.
func TestRedissonWritersAndOursExclude(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		j, jw := newJava(t, s, "x", 7), newJava(t, s, "x", 8)

		j.wants(javaReadLock, 30*time.Second, "nil")
		if got := jw.run(javaWriteLock, 30*time.Second); got == "nil" {
			t.Fatal("a Java writer came in beside a Java reader")
		}
		refused(t, ctx, w.TryLock, "a writer of ours beside a Java reader")
		waiting := goLock(ctx, w.Lock)
		listening(t, s, "x", 1)
		j.wants(javaReadUnlock, 30*time.Second, "1")
		writer := in(t, waiting, 10*time.Second, "our writer, woken by Java's last reader")

		for _, script := range []string{javaReadLock, javaWriteLock} {
			if got := j.run(script, 30*time.Second); got == "nil" {
				t.Fatal("Java came in beside our writer")
			}
		}
		heard, stop := messages(t, s, "x")
		must(t, writer.hold.Unlock())
		if msg := locktest.Get(t, heard, 5*time.Second, "the writer's message"); msg != "1" {
			t.Errorf("message %q wakes one Java reader only, want 1", msg)
		}
		stop()
		_, r := hold(t, ctx, m.RLock)
		if got := jw.run(javaWriteLock, 30*time.Second); got == "nil" {
			t.Fatal("a Java writer came in beside our reader")
		}
		must(t, r.Unlock())

		jw.wants(javaWriteLock, 30*time.Second, "nil")
		refused(t, ctx, m.TryRLock, "a reader of ours beside a Java writer")
		refused(t, ctx, m.TryLock, "a writer of ours beside a Java writer")
		reading := goLock(ctx, m.RLock)
		listening(t, s, "x", 1)
		jw.wants(javaWriteUnlock, 30*time.Second, "1")
		must(t, in(t, reading, 10*time.Second, "our reader, woken by Java's writer").hold.Unlock())
		nothingLeft(t, s)
	})
}

// A Java reader that leaves cuts the TTL of the lock to what the timeout keys say: our
// reader must be among them for as long as it holds, renewed and after a downgrade too.
func TestRedissonUnlockLeavesARenewedReader(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		section, r := hold(t, within(t, 2*time.Minute), rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x").RLock)
		outlivesJavaReaders(t, s, section, lease)
		must(t, r.Unlock())
		nothingLeft(t, s)
	})
}

func TestRedissonUnlockLeavesADowngradedReader(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		m := rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x")
		section, w := hold(t, within(t, 2*time.Minute), m.Lock)
		_, r := hold(t, section, m.RLock)
		_, r2 := hold(t, section, m.RLock)
		must(t, w.Unlock())
		outlivesJavaReaders(t, s, section, lease)
		must(t, r.Unlock())
		must(t, r2.Unlock())
		nothingLeft(t, s)
	})
}

// outlivesJavaReaders checks that a section stays while several leases pass and Java readers come
// and go.
func outlivesJavaReaders(t *testing.T, s *redistest.Server, section context.Context, lease time.Duration) {
	t.Helper()
	j := newJava(t, s, "x", 7)
	for until := time.Now().Add(10 * lease / 3); time.Now().Before(until); time.Sleep(lease / 100) {
		j.wants(javaReadLock, 30*time.Second, "nil")
		j.wants(javaReadUnlock, 30*time.Second, "0")
		if section.Err() != nil {
			t.Fatalf("the section has ended: %v", context.Cause(section))
		}
	}
}

// Java readers that died keep a writer of ours out no longer than their timeout keys.
func TestDeadRedissonReadersEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		j := newJava(t, s, "x", 7)
		j.wants(javaReadLock, time.Second, "nil")
		_, r := hold(t, ctx, m.RLock, rlock.Lease(time.Minute)) // so that the hash outlives it
		must(t, r.Unlock())
		if got := pttl(t, s, "x"); got > time.Second {
			t.Fatalf("the last of ours has left the lock for %v, longer than Java's reader lives", got)
		}
		must(t, s.Do(t, "PEXPIRE", "x", "60000").Error()) // as the renewal of another one of Java's would
		refused(t, ctx, m.TryLock, "a writer beside a Java reader that may live")
		w := in(t, goLock(ctx, m.Lock), 5*time.Second, "the writer")
		must(t, w.hold.Unlock())
		nothingLeft(t, s)
	})
}

// A waiter of Redisson that is just asking takes no notice of a `1`, but of the `0` behind it.
// Both paths of the release script send it, to those who listen, and so does a forced unlock.
func TestWriteUnlockAlsoWakesOneThatIsJustAsking(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m, ctx := rwlock.New(dial(t, s, slow), "x"), within(t, 20*time.Second)
		heard := locktest.Hears(t, s, "redisson_rwlock:{x}")
		tells := func(what string) {
			t.Helper()
			for _, want := range []string{"1", "0"} {
				if got := locktest.Get(t, heard, 5*time.Second, what); got != want {
					t.Errorf("%s: heard %q, want %q", what, got, want)
				}
			}
		}
		_, h := hold(t, ctx, m.Lock)
		must(t, h.Unlock())
		tells("an Unlock")
		section, h := hold(t, rlock.WithOwner(ctx, "me"), m.Lock)
		_, r := hold(t, section, m.RLock)
		must(t, h.Unlock())
		tells("a downgrade")
		must(t, r.Unlock())
		if got := locktest.Get(t, heard, 5*time.Second, "the read Unlock"); got != "0" {
			t.Errorf("the read Unlock: heard %q", got)
		}
		hold(t, ctx, m.Lock)
		ended, err := m.ForceUnlock(ctx)
		must(t, err)
		if !ended {
			t.Error("ForceUnlock has found nobody")
		}
		tells("ForceUnlock")
	})
}

// A forced lock wakes all of Redisson's waiters by a 1, and with the 0 behind it one that is just
// asking.
func TestForcedLockWakesWaitersOfRedisson(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		m := rwlock.New(dial(t, s, slow), "x")
		for side, lock := range map[string]func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error){"read": m.RLock, "write": m.Lock} {
			_, h, err := lock(ctx)
			must(t, err)
			heard, stop := messages(t, s, "x")
			if forced, err := m.ForceUnlock(ctx); err != nil || !forced {
				t.Errorf("%s: forced: %v, %v", side, forced, err)
			}
			for _, want := range []string{"1", "0"} {
				if msg := locktest.Get(t, heard, 5*time.Second, "a message"); msg != want {
					t.Errorf("%s: message %q, want %s", side, msg, want)
				}
			}
			stop()
			is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		}
	})
}
