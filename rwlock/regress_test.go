package rwlock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The timeout key that is left after an unlock lives as long as the hold that is left, or
// Redisson's unlock would take the reader for dead.
func TestJavaUnlockAfterShortFirstHold(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		w := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		j := newJava(t, s, "x", 7)
		lease := s.Slowed(time.Second)
		section, r1 := hold(t, ctx, m.RLock, rlock.Lease(lease))
		_, r2 := hold(t, section, m.RLock, rlock.Lease(time.Minute))
		must(t, r1.Unlock())
		time.Sleep(lease + lease/5) // until the shorter lease is over
		j.wants(javaReadLock, 30*time.Second, "nil")
		got := j.run(javaReadUnlock, 30*time.Second)
		_, _, err := w.TryLock(ctx)
		if err == nil {
			t.Errorf("Java's unlock answered %s, writer got in: %v; section %v, reader trusted for %v", got, err, section.Err(), r2.Remaining())
		}
	})
}

// The same with two sessions that share an owner.
func TestJavaUnlockSharedOwner(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 30*time.Second), "me")
		_, b1 := hold(t, ctx, b.RLock, rlock.Lease(10*time.Second))
		_, a1 := hold(t, ctx, a.RLock, rlock.Lease(10*time.Second))
		_, a2 := hold(t, ctx, a.RLock, rlock.Lease(time.Minute))
		must(t, a1.Unlock())
		must(t, b1.Unlock())
		if p := pttl(t, s, "{x}:me:rwlock_timeout:1"); p < a2.Remaining() {
			t.Errorf("T1 lives %v", p)
		}
	})
}

// A wake-up that reached a writer which is told ErrUpgrade is for the caller behind it.
func TestUpgradeSwallowsWakeup(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		sa, p := locktest.DialProxy(t, s, slow)
		x, a, b := rwlock.New(dial(t, s, slow), "x"), rwlock.New(sa, "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "me")
		_, hx := hold(t, ctx, x.Lock)
		wme := goLock(me, a.Lock) // front of a's line
		listening(t, s, "x", 1)
		redistest.Eventually(t, 5*time.Second, "asked twice", func() bool { return p.Count("EVALSHA") >= 2 })
		r := goLock(ctx, a.RLock)         // behind it
		time.Sleep(50 * time.Millisecond) // most likely it stands in the line by then
		rme := goLock(me, b.RLock)
		readersWait(t, s, "x", 1)
		time.Sleep(50 * time.Millisecond) // most likely it stands in the line by then
		_, release := p.HoldRequest(calls("acquire_write"))
		must(t, hx.Unlock())
		in(t, rme, 5*time.Second, "me reads in b")
		release()
		is(t, "upgrade", locktest.Get(t, wme, 5*time.Second, "me's writer").err, rwlock.ErrUpgrade)
		in(t, r, 5*time.Second, "the reader behind")
	})
}

// Many readers that died do not keep a writer waiting when the last living one leaves.
func TestManyDeadReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		dead := dial(t, s, slow)
		ctx := within(t, 20*time.Second)
		_, r := hold(t, ctx, m.RLock, rlock.Lease(time.Minute))
		for range 20 {
			hold(t, ctx, rwlock.New(dead, "x").RLock, rlock.Lease(500*time.Millisecond))
		}
		c := goLock(ctx, w.Lock)
		listening(t, s, "x", 1)
		redistest.Eventually(t, 5*time.Second, "dead", func() bool {
			st, err := m.State(ctx)
			return err == nil && len(st.Owners) == 1
		})
		must(t, r.Unlock())
		in(t, c, 5*time.Second, "the writer: nobody alive holds it")
	})
}

// A hold that died does not live again when its owner comes back from another process.
func TestDeadHoldRevivedByItsOwner(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, o, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "me")
		_, other := hold(t, ctx, o.RLock)
		hold(t, me, a.RLock, rlock.Lease(300*time.Millisecond)) // its process dies
		redistest.Eventually(t, 5*time.Second, "dead", func() bool {
			st, err := o.State(ctx)
			return err == nil && len(st.Owners) == 1
		})
		_, h := hold(t, me, b.RLock)
		must(t, h.Unlock())
		must(t, other.Unlock())
		_, _, err := w.TryLock(ctx)
		if err != nil {
			st, _ := w.State(ctx)
			t.Errorf("a writer with nobody left: %v, %+v", err, st)
		}
	})
}

// Unlock of a lost read hold does not touch a Mutex that the same owner has taken since.
func TestUnlockFreesMutexOfSameOwner(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a := rwlock.New(dial(t, s, slow), "x")
		mx := rlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 20*time.Second), "me")
		_, r := hold(t, ctx, a.RLock)
		must(t, s.Do(t, "DEL", "x").Error())
		_, mh, err := mx.Lock(ctx)
		must(t, err)
		if err := r.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of the lost read hold: %v", err)
		}
		if field(t, s, "x", "me") != "1" {
			t.Errorf("the Mutex is gone; its Unlock: %v", mh.Unlock())
		}
	})
}

// A read lease under a write lease lengthens that for as long as it is held, no longer.
func TestReadUnderWriteLengthensWrite(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 20*time.Second)
		section, w := hold(t, ctx, m.Lock, rlock.Lease(5*time.Second))
		_, r := hold(t, section, m.RLock, rlock.Lease(time.Minute))
		must(t, r.Unlock())
		if got := pttl(t, s, "x"); got > 5*time.Second+rounding {
			t.Errorf("write lock lives %v, lease 5s; Remaining %v", got, w.Remaining())
		}
	})
}

// After a downgrade the lock lives as long as the read lease.
func TestDowngradeKeepsLongerThanLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 20*time.Second)
		section, w := hold(t, ctx, m.Lock, rlock.Lease(time.Minute))
		_, r := hold(t, section, m.RLock, rlock.Lease(10*time.Second))
		must(t, r.Extend(ctx, 5*time.Second))
		must(t, w.Unlock())
		if got := pttl(t, s, "x"); got > 5*time.Second+rounding {
			t.Errorf("read lock lives %v, lease 5s; Remaining %v", got, r.Remaining())
		}
	})
}

// A reader of another session under the same owner does not get the writer's long lease.
func TestSharedOwnersReaderGetsWritersLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := rlock.WithOwner(within(t, 20*time.Second), "me")
		_, w := hold(t, ctx, a.Lock, rlock.Lease(10*time.Minute))
		_, r := hold(t, ctx, b.RLock)
		must(t, w.Unlock())
		if got := pttl(t, s, "x"); got > 30*time.Second+rounding {
			t.Errorf("read lock lives %v, lease 30s; Remaining %v", got, r.Remaining())
		}
	})
}

// Redisson's renewal sets the lock's TTL down; if its process dies then, ours stays.
func TestJavaRenewalShortens(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(900 * time.Millisecond)
		m := rwlock.New(dial(t, s, rlock.Config{Lease: lease}), "x")
		ctx := within(t, time.Minute)
		j := newJava(t, s, "x", 7)
		section, r := hold(t, ctx, m.RLock, rlock.Lease(time.Minute))
		j.wants(javaReadLock, lease, "nil")
		must(t, s.Do(t, "PEXPIRE", "x", strconv.FormatInt(lease.Milliseconds(), 10)).Error()) // Java's renewal, then it dies
		select {
		case <-section.Done():
			t.Errorf("lost: %v, %v", context.Cause(section), r.Remaining())
		case <-time.After(3 * lease):
		}
	})
}

// An Unlock of the write side that cannot wait for its turn happens when that comes.
func TestWriteUnlockThatCouldNotWait(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Minute, ReleaseTimeout: time.Second, Lease: 60 * time.Second})
		m, o := rwlock.New(ses, "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		section, w := hold(t, ctx, m.Lock)
		_, r0 := hold(t, section, m.RLock)
		seen, release := p.HoldReply(calls("acquire_read"))
		c := goLock(section, m.RLock)
		locktest.Get(t, seen, 5*time.Second, "seen")
		if err := w.Unlock(); err == nil {
			t.Error("Unlock that could not wait for its turn returned nil")
		}
		release()
		r := in(t, c, 5*time.Second, "nested read")
		redistest.Eventually(t, 5*time.Second, "another reader to get in", func() bool {
			_, h, err := o.TryRLock(ctx)
			if err == nil {
				must(t, h.Unlock())
			}
			return err == nil
		})
		must(t, r0.Unlock())
		must(t, r.hold.Unlock())
		nothingLeft(t, s)
	})
}

// A downgrade whose answer is lost lets the waiters of the same session in.
func TestDowngradeUnansweredLocalWaiter(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Minute, ReleaseTimeout: s.Slowed(500 * time.Millisecond), Lease: 60 * time.Second})
		m := rwlock.New(ses, "x")
		ctx := within(t, 20*time.Second)
		section, w := hold(t, ctx, m.Lock)
		_, r := hold(t, section, m.RLock)
		c := goLock(ctx, m.RLock)
		time.Sleep(100 * time.Millisecond) // most likely it stands in the line by then
		_, release := p.HoldReply(calls("release_write"))
		if err := w.Unlock(); err == nil {
			t.Error("Unlock without an answer returned nil")
		}
		release()
		must(t, in(t, c, 5*time.Second, "the reader of the same session").hold.Unlock())
		must(t, r.Unlock())
	})
}
