package fault_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// ForceUnlock tells the holder at once: the lease is 30 s, the first renewal 10 s away,
// so that only the message can explain it.
func faultForce(t *testing.T, owner string, ownSession bool, opts ...rlock.LockOption) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		operator := ses
		if !ownSession {
			operator = dial(t, s, rlock.Config{})
		}
		third := dial(t, s, rlock.Config{PollFloor: 20 * time.Second})
		ctx := within(t, 30*time.Second)
		lockCtx := ctx
		if owner != "" {
			lockCtx = rlock.WithOwner(ctx, owner)
		}
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(lockCtx, opts...)
		must(t, err)
		inner, h2, err := m.Lock(section, opts...)
		must(t, err)
		// Another lock of the same owner, and another owner of the session, go on.
		otherSection, other, err := rlock.New(ses, name+"2").Lock(section)
		must(t, err)
		waiter := locktest.GoLock(rlock.New(third, name), ctx)
		redistest.Eventually(t, 5*time.Second, "the waiter subscribes", func() bool {
			n, err := s.Do(t, "PUBSUB", "NUMSUB", locktest.Channel(name)).AsIntMap()
			return err == nil && n[locktest.Channel(name)] >= 1
		})

		found, err := rlock.New(operator, name).ForceUnlock(ctx)
		must(t, err)
		if !found {
			t.Error("ForceUnlock found no hold")
		}
		locktest.Ends(t, section, 3*time.Second, rlock.ErrLost)
		locktest.Ends(t, inner, s.Slack(), rlock.ErrLost)
		locktest.Is(t, "Unlock of the inner hold", h2.Unlock(), rlock.ErrLost)
		locktest.Is(t, "Unlock of the outer hold", h.Unlock(), rlock.ErrLost)
		// Of an owner that others may know the message is checked before it is believed.
		if n := locktest.CallsSent(t, p, "renew"); n > 0 && owner == "" {
			t.Errorf("%d renewals; this test is about none", n)
		}
		got := locktest.Get(t, waiter, 5*time.Second, "the waiter's Lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		if cause := context.Cause(otherSection); cause != rlock.ErrLost {
			// It derives from the section that ended.
			t.Errorf("the derived section's end: %v", cause)
		}
		must(t, other.Unlock())
		if found, err := rlock.New(operator, name).ForceUnlock(ctx); err != nil || found {
			t.Errorf("ForceUnlock of a free lock: %v, %v", found, err)
		}
	})
}

func TestFaultForceUnlockTellsTheHolderAtOnce(t *testing.T) { faultForce(t, "", false) }

func TestFaultForceUnlockTellsAHolderWithAFixedLeaseAtOnce(t *testing.T) {
	faultForce(t, "", false, rlock.Lease(20*time.Second))
}

func TestFaultForceUnlockTellsAHolderInItsOwnSessionAtOnce(t *testing.T) { faultForce(t, "", true) }

func TestFaultForceUnlockTellsANamedOwnerAtOnce(t *testing.T) { faultForce(t, "order-17", false) }

// A name that has the shape of a session's own owner ids.
func TestFaultForceUnlockTellsANamedOwnerWithANumberAtOnce(t *testing.T) {
	faultForce(t, "order:17", false)
}

// A named owner that holds in two sessions: both are told.
func TestFaultForceUnlockTellsAllSessionsOfANamedOwner(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		a, b, operator := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := rlock.WithOwner(within(t, 30*time.Second), "order-17")
		name := redistest.Name(t)
		section1, h1, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		section2, h2, err := rlock.New(b, name).Lock(ctx)
		must(t, err)
		found, err := rlock.New(operator, name).ForceUnlock(ctx)
		must(t, err)
		if !found {
			t.Error("ForceUnlock found no hold")
		}
		locktest.Ends(t, section1, 3*time.Second, rlock.ErrLost)
		locktest.Ends(t, section2, 3*time.Second, rlock.ErrLost)
		locktest.Is(t, "Unlock", h1.Unlock(), rlock.ErrLost)
		locktest.Is(t, "Unlock", h2.Unlock(), rlock.ErrLost)
	})
}

// The session's own channel is refused from the start: the next renewal tells.
func TestFaultForceUnlockIsNoticedByTheNextRenewal(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		p, _ := faulttest.Of(t, s.Option())
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		lease := s.Slowed(4 * time.Second)
		ses := locktest.DialVia(t, s, p, rlock.Config{Lease: lease})
		operator := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		locktest.Together(t, []context.Context{ctx, rlock.WithOwner(ctx, "order-17")}, func(lockCtx context.Context) {
			name := redistest.Name(t)
			section, h, err := rlock.New(ses, name).Lock(lockCtx)
			must(t, err)
			_, err = rlock.New(operator, name).ForceUnlock(ctx)
			must(t, err)
			locktest.Ends(t, section, lease/3+s.Slack(), rlock.ErrLost)
			locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		})
	})
}

// The session's channel is interrupted while the lock is forced: when it is back the
// session asks for its holds, not only at the next renewal, which is 10 s away.
func TestFaultForceUnlockDuringABrokenConnectionIsNoticedAfterIt(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		operator := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		p.Refuse(true)
		_, err = rlock.New(operator, name).ForceUnlock(ctx)
		must(t, err)
		p.Refuse(false)
		locktest.Ends(t, section, 6*time.Second, rlock.ErrLost)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

// The session's channel was refused when the session began, and is allowed now: from
// then on a forced unlock is told at once.
func TestFaultRefusedSessionChannelHeals(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		p, _ := faulttest.Of(t, s.Option())
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		ses := locktest.DialVia(t, s, p, rlock.Config{})
		operator := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		p.RefuseCommand("SUBSCRIBE", "")
		redistest.Eventually(t, 8*time.Second, "the session's channel", func() bool {
			n, err := s.Do(t, "PUBSUB", "NUMSUB", "relock_session:"+ses.ID()).AsIntMap()
			return err == nil && n["relock_session:"+ses.ID()] == 1
		})
		section, _, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		_, err = rlock.New(operator, name).ForceUnlock(ctx)
		must(t, err)
		locktest.Ends(t, section, 3*time.Second, rlock.ErrLost)
	})
}

// A caller that pauses because its attempt got no answer asks with another owner when its own was
// force-unlocked meanwhile: what that one would be granted nobody would hold.
func TestFaultForceUnlockBetweenTwoAttempts(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(*rlock.Mutex, context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error){
		"Lock":    (*rlock.Mutex).Lock,
		"TryLock": (*rlock.Mutex).TryLock,
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				ctx := &locktest.LateContext{Context: within(t, 20*time.Second), Asked: make(chan struct{}), Answer: make(chan struct{})}
				var lost sync.Once
				trace := &rlock.Trace{Attempt: func(a locktrace.Attempt) {
					if a.Err != nil {
						lost.Do(func() { ctx.Slow.Store(true) })
					}
				}}
				ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: trace})
				locktest.Keep(ses, 0) // what is idle is forgotten, as it is among very many locks
				p.DropReply(faulttest.HasArg("x"))
				m := rlock.New(ses, "x")
				locked := locktest.Go(func() error {
					_, h, err := lock(m, ctx)
					if err == nil && h.Remaining() == 0 {
						t.Error("the lock is not held")
					}
					return err
				})
				locktest.Get(t, ctx.Asked, 10*time.Second, "the pause")
				found, err := rlock.New(dial(t, s, rlock.Config{}), "x").ForceUnlock(within(t, 10*time.Second))
				must(t, err)
				if !found {
					t.Error("the attempt that got no answer had not taken the lock")
				}
				redistest.Eventually(t, 10*time.Second, "the session to know", func() bool {
					_, asking, _, _, _ := locktest.Books(ses)
					return asking == 0
				})
				close(ctx.Answer)
				if err := locktest.Get(t, locked, 15*time.Second, "the lock"); err != nil {
					t.Error(err)
				}
				if n, err := s.Do(t, "HLEN", "x").AsInt64(); n != 1 || err != nil {
					t.Errorf("%d owners have it, %v", n, err)
				}
			})
		})
	}
}

// A TryLock whose grant is force-unlocked before it has taken it in tries again, also if its session
// has forgotten the lock meanwhile.
func TestForceUnlockOfAGrantThatIsOnItsWay(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx, name, operator := within(t, 20*time.Second), redistest.Name(t), dial(t, s, rlock.Config{})
		var ses *rlock.Session
		var once sync.Once
		ses = dial(t, s, rlock.Config{Trace: &rlock.Trace{Attempt: func(locktrace.Attempt) {
			once.Do(func() {
				if found, err := rlock.New(operator, name).ForceUnlock(ctx); !found || err != nil {
					t.Errorf("ForceUnlock: %v, %v", found, err)
				}
				redistest.Eventually(t, 10*time.Second, "the session to know", func() bool {
					_, asking, _, _, _ := locktest.Books(ses)
					return asking == 0
				})
			})
		}}})
		locktest.Keep(ses, 0)
		_, h, err := rlock.New(ses, name).TryLock(ctx)
		must(t, err)
		must(t, h.Unlock())
	})
}
