package claim_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A claim without tokens is not handed over to a waiter of the same name that wants one.
func TestAPlainClaimIsNotHandedToAFencedWaiter(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		_, h := st.Lock(st.Ctx)
		next := st.QueueFor(rlock.New(st.Session, st.Name, rlock.Fenced()), st.Ctx)
		must(t, h.Unlock())
		got := st.In(next)
		if got.Hold.Token() != 1 || st.Count() != 0 {
			t.Errorf("token %d, %d hand-overs", got.Hold.Token(), st.Count())
		}
		plain := st.Queue(st.Ctx)
		must(t, got.Hold.Unlock())
		must(t, st.In(plain).Hold.Unlock())
		if st.Count() != 0 {
			t.Errorf("%d hand-overs", st.Count())
		}
	})
}

// Fenced sections are handed over in memory for as many tokens as the acquire has reserved.
func TestFencedSectionsAreHandedOver(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		st.Mutex = rlock.New(st.Session, st.Name, rlock.Fenced())
		_, h := st.Lock(st.Ctx)
		first, second, third := st.Queue(st.Ctx), st.Queue(st.Ctx), st.Queue(st.Ctx)
		must(t, h.Unlock()) // its acquire has reserved for itself only
		a := st.In(first)
		locktest.Unhurried(st.Session, st.Name)
		b := st.HandOver(a.Hold, second)
		c := st.HandOver(b.Hold, third)
		for i, got := range []*rlock.Hold{h, a.Hold, b.Hold, c.Hold} {
			if got.Token() != int64(i+1) {
				t.Errorf("section %d has token %d", i+1, got.Token())
			}
		}
		must(t, c.Hold.Unlock())
	})
}

// "Lost" arrives while the claim is asking, before the answer that grants it. No section opens
// on it: the caller asks again, with a claim of its own.
func TestAClaimThatIsLostWhileItAsksOpensNoSection(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, p := locktest.DialProxy(t, s, rlock.Config{})
		b := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		signal, _, err := rlock.New(a, "y").Lock(ctx)
		must(t, err)
		seen, answer := p.HoldReply(faulttest.HasArg("x"))
		defer answer()
		locked := locktest.GoLock(rlock.New(a, "x"), ctx)
		locktest.Get(t, seen, 5*time.Second, "the grant")
		granted, err := s.Do(t, "HKEYS", "x").AsStrSlice()
		must(t, err)
		found, err := rlock.New(b, "x").ForceUnlock(ctx)
		must(t, err)
		if !found {
			t.Fatal("nothing to force")
		}
		_, err = rlock.New(b, "y").ForceUnlock(ctx) // what is published later is heard later
		must(t, err)
		locktest.Ends(t, signal, 5*time.Second, rlock.ErrLost)
		answer()
		got := locktest.Get(t, locked, 5*time.Second, "Lock")
		must(t, got.Err)
		if n := locktest.Field(t, s, "x", got.Hold.Owner()); n != "1" || got.Hold.Owner() == granted[0] || got.Ctx.Err() != nil {
			t.Errorf("owner %q has %q holds (that of the first grant was %q); the section: %v", got.Hold.Owner(), n, granted[0], got.Ctx.Err())
		}
		must(t, got.Hold.Unlock())
		locktest.NothingLeft(t, s, b)
	})
}

// The front has an attempt in flight when the claim could be handed over to it: it is not, and
// nothing is left behind.
func TestAClaimIsNotHandedToAFrontThatAsks(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		var p locktest.Passes
		ses, late := locktest.DialGated(t, s, rlock.Config{Trace: p.Trace()})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		for _, leaves := range []bool{false, true} {
			ctx, cancel := context.WithCancel(within(t, 30*time.Second))
			defer cancel()
			seen, send := late.Hold(locktest.Calls(t, "acquire"))
			defer send()
			front := locktest.GoLock(m, ctx)
			locktest.Get(t, seen, 5*time.Second, "the front's attempt")
			_, h, err := m.TryLock(within(t, 30*time.Second))
			must(t, err)
			locktest.Unhurried(ses, name)
			must(t, h.Unlock())
			if p.Count() != 0 {
				t.Errorf("%d hand-overs", p.Count())
			}
			if leaves {
				cancel()
			}
			send()
			got := locktest.Get(t, front, 5*time.Second, "the front")
			if leaves {
				locktest.Is(t, "Lock", got.Err, rlock.ErrNotAcquired, context.Canceled)
			} else {
				must(t, got.Err)
				if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" || got.Hold.Owner() == h.Owner() {
					t.Errorf("the front has %q holds in Redis", n)
				}
				must(t, got.Hold.Unlock())
			}
			locktest.NothingLeft(t, s, ses)
		}
	})
}

// Two handles of one name, and the lock was idle in between, so that the first has an old record
// of it: they share one queue, and a forced unlock finds what either holds.
func TestHandlesOfOneNameShareOneQueue(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		first, second := rlock.New(st.Session, st.Name), rlock.New(st.Session, st.Name)
		must(t, first.Do(st.Ctx, func(context.Context) error { return nil }))
		redistest.Eventually(t, 5*time.Second, "the lock is idle", func() bool {
			_, _, locks, _, _ := locktest.Books(st.Session)
			return locks == 0
		})
		st.Mutex = second
		_, h := st.Lock(st.Ctx)
		in := st.HandOver(h, st.QueueFor(first, st.Ctx))
		found, err := second.ForceUnlock(st.Ctx)
		must(t, err)
		if !found {
			t.Error("ForceUnlock found no hold")
		}
		locktest.Ends(t, in.Ctx, 5*time.Second, rlock.ErrLost)
		locktest.Is(t, "Unlock", in.Hold.Unlock(), rlock.ErrLost)
		locktest.NothingLeft(t, s, st.Session)
	})
}

// What another caller of the session is granted tells that the lock was lost, long before a renewal
// would.
func TestAGrantTellsThatTheLockWasLost(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{Lease: time.Hour})
		section, h := st.Lock(st.Ctx)
		must(t, s.Do(t, "DEL", st.Name).Error())
		_, other, err := st.Mutex.TryLock(st.Ctx)
		must(t, err)
		if section.Err() == nil {
			t.Error("two sections are open")
		}
		locktest.Ends(t, section, 5*time.Second, rlock.ErrLost)
		locktest.Is(t, "Unlock of the lost one", h.Unlock(), rlock.ErrLost)
		must(t, other.Unlock())
		locktest.NothingLeft(t, s, st.Session)
	})
}
