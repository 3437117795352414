package fault_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R1: the key goes away under the holder. It learns of it at the next renewal, a third of the
// lease later at most, while trust in the lease would last for another 0.61 of it. So only the
// renewal can explain an end in time.
func faultGone(t *testing.T, opts []rlock.LockOption, gone func(t *testing.T, s *redistest.Server, name string)) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(4 * time.Second)
		ses := dial(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(within(t, 20*time.Second), opts...)
		must(t, err)
		inner, h2, err := m.Lock(section, opts...)
		must(t, err)
		gone(t, s, name)
		locktest.Ends(t, section, lease/3+s.Slack(), rlock.ErrLost)
		locktest.Ends(t, inner, s.Slack(), rlock.ErrLost)
		locktest.Is(t, "Unlock of the inner hold", h2.Unlock(), rlock.ErrLost)
		locktest.Is(t, "Unlock of the outer hold", h.Unlock(), rlock.ErrLost)
		locktest.Is(t, "second Unlock", h.Unlock(), rlock.ErrNotHeld)
	})
}

func TestFaultDeletedLockEndsTheSection(t *testing.T) {
	faultGone(t, nil, func(t *testing.T, s *redistest.Server, name string) { must(t, s.Do(t, "DEL", name).Error()) })
}

func TestFaultFlushEndsTheSection(t *testing.T) {
	faultGone(t, nil, func(t *testing.T, s *redistest.Server, _ string) { s.FlushAll(t) })
}

func TestFaultExpiredLockEndsTheSection(t *testing.T) {
	faultGone(t, nil, func(t *testing.T, s *redistest.Server, name string) { must(t, s.Do(t, "PEXPIRE", name, "1").Error()) })
}

// Somebody else's lock in its place is as good as none.
func TestFaultReplacedLockEndsTheSection(t *testing.T) {
	faultGone(t, nil, func(t *testing.T, s *redistest.Server, name string) {
		must(t, s.Do(t, "DEL", name).Error())
		must(t, s.Do(t, "HSET", name, "other", "1").Error())
	})
}

func TestFaultLockReplacedByAnotherTypeEndsTheSection(t *testing.T) {
	faultGone(t, nil, func(t *testing.T, s *redistest.Server, name string) { must(t, s.Do(t, "SET", name, "x").Error()) })
}

// A fixed lease is not renewed, but asked for as often.
func TestFaultDeletedLockEndsASectionWithAFixedLease(t *testing.T) {
	faultGone(t, []rlock.LockOption{rlock.Lease(90 * time.Second)},
		func(t *testing.T, s *redistest.Server, name string) { must(t, s.Do(t, "DEL", name).Error()) })
}

// R1, and no watchdog at all: a lock that was gone when it was unlocked is reported.
func TestFaultUnlockReportsALockThatIsGone(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{}) // the first renewal is 10 s away
		ctx := within(t, 20*time.Second)
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			section, h, err := m.Lock(lockCtx)
			must(t, err)
			s.FlushAll(t)
			locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
			locktest.Ends(t, section, s.Slack(), rlock.ErrReleased)
			locktest.Is(t, "second Unlock", h.Unlock(), rlock.ErrNotHeld)

			section, outer, err := m.Lock(lockCtx)
			must(t, err)
			_, inner, err := m.Lock(section)
			must(t, err)
			s.FlushAll(t)
			locktest.Is(t, "Unlock of the inner hold", inner.Unlock(), rlock.ErrLost)
			locktest.Ends(t, section, s.Slack(), rlock.ErrLost)
			locktest.Is(t, "Unlock of the outer hold", outer.Unlock(), rlock.ErrLost)

			section, outer, err = m.Lock(lockCtx)
			must(t, err)
			s.FlushAll(t)
			_, _, err = m.Lock(section)
			locktest.Is(t, "nested Lock", err, rlock.ErrLost)
			locktest.Ends(t, section, s.Slack(), rlock.ErrLost)
			locktest.Is(t, "Unlock of the outer hold", outer.Unlock(), rlock.ErrLost)
			if !locktest.Free(t, s, name) {
				t.Fatal("the nested Lock left something behind")
			}
		}
	})
}

// R1: the server comes back without the lock.
func TestFaultRestartedServerEndsTheSection(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 3 * time.Second
		ses := dial(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		ctx := within(t, 30*time.Second)
		section, h, err := m.Lock(ctx)
		must(t, err)
		s.Restart(t)
		locktest.Ends(t, section, lease+s.Slack(), rlock.ErrLost)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)

		// The scripts are gone too; the next acquisition works, and is renewed.
		section, h, err = m.Lock(ctx)
		must(t, err)
		locktest.Stays(t, section, lease+lease/3)
		if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
			t.Fatalf("count %q after the lease", n)
		}
		must(t, h.Unlock())
	})
}

// R10: one renewal whose reply gets lost, connection and all, is made up for.
func TestFaultLostReplyOfRenewalKeepsTheLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1500 * time.Millisecond)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(within(t, 90*time.Second))
		must(t, err)
		p.DropReply(locktest.Calls(t, "renew"))
		p.DropRequest(locktest.Calls(t, "renew"))
		locktest.Stays(t, section, 2*lease)
		if n := locktest.CallsSent(t, p, "renew"); n < 4 {
			t.Fatalf("%d renewals in two leases", n)
		}
		must(t, h.Unlock())
	})
}

// R10: after a real loss the next acquisition of that name is renewed again.
func TestFaultNextHoldAfterALossIsRenewed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(900 * time.Millisecond)
		ses := dial(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		ctx := within(t, 90*time.Second)
		section, lost, err := m.Lock(ctx)
		must(t, err)
		must(t, s.Do(t, "DEL", name).Error())
		locktest.Ends(t, section, lease+s.Slack(), rlock.ErrLost)

		section, h, err := m.Lock(ctx)
		must(t, err)
		// The loser unlocks late: that is no business of the new hold.
		locktest.Is(t, "Unlock of the lost hold", lost.Unlock(), rlock.ErrLost)
		locktest.Stays(t, section, 3*lease)
		if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
			t.Fatalf("count %q after three leases", n)
		}
		must(t, h.Unlock())
		if !locktest.Free(t, s, name) {
			t.Fatal("not free")
		}
	})
}

// The watchdog keeps a lock for as long as its holder wants.
func TestFaultWatchdogKeepsTheLockForManyLeases(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(900 * time.Millisecond)
		ses := dial(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(within(t, 90*time.Second))
		must(t, err)
		for end := time.Now().Add(5 * lease); time.Now().Before(end); {
			locktest.Stays(t, section, 20*time.Millisecond)
			if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
				t.Fatalf("count %q, %v before the end", n, time.Until(end))
			}
		}
		must(t, h.Unlock())
	})
}

// The context given to the outermost Lock ends and nobody unlocks: one lease later the
// lock is free. Unlock in between works.
func TestFaultAbandonedLockFreesItselfOneLeaseLater(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(1200 * time.Millisecond)
		ses := dial(t, s, rlock.Config{Lease: lease})
		owners := []context.Context{context.Background(), rlock.WithOwner(context.Background(), "order-17")}
		locktest.Together(t, owners, func(ctx context.Context) {
			name := redistest.Name(t)
			m := rlock.New(ses, name)
			parent, cancel := context.WithCancel(ctx)
			defer cancel()
			section, h, err := m.Lock(parent)
			must(t, err)
			locktest.Stays(t, section, lease) // it is one that is renewed
			cancel()
			locktest.Ends(t, section, s.Slack(), context.Canceled)
			redistest.Eventually(t, lease+s.Slack(), "the lock is free", func() bool { return locktest.Free(t, s, name) })
			locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		})
	})
}

func TestFaultUnlockWorksAfterTheContextEnded(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		for _, ctx := range []context.Context{context.Background(), rlock.WithOwner(context.Background(), "order-17")} {
			parent, cancel := context.WithCancel(ctx)
			defer cancel()
			section, h, err := m.Lock(parent)
			must(t, err)
			_, h2, err := m.Lock(section)
			must(t, err)
			cancel()
			locktest.Ends(t, section, s.Slack(), context.Canceled)
			must(t, h.Unlock())
			if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
				t.Fatalf("count %q", n)
			}
			must(t, h2.Unlock())
			if !locktest.Free(t, s, name) {
				t.Fatal("not free")
			}
		}
	})
}
