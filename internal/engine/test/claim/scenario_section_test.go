package claim_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The tests of the scenario_*_test.go files are about what claims and sections must survive.

// A Lock re-enters the section of its own lock, although that of another lock lies between.
func TestALockReentersThroughTheSectionOfAnother(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		x, y := rlock.New(ses, "x"), rlock.New(ses, "y")
		inX, h, err := x.Lock(within(t, 20*time.Second))
		must(t, err)
		inY, hy, err := y.Lock(inX)
		must(t, err)
		inner, again, err := x.Lock(inY)
		must(t, err)
		_, hy2, err := y.Lock(inner)
		must(t, err)
		for name, hold := range map[string]*rlock.Hold{"x": again, "y": hy2} {
			if n := locktest.Field(t, s, name, hold.Owner()); n != "2" {
				t.Errorf("%s: the owner has %q holds, want 2", name, n)
			}
		}
		for _, hold := range []*rlock.Hold{hy2, again, hy, h} {
			must(t, hold.Unlock())
		}
		locktest.NothingLeft(t, s, ses)
	})
}

// A context that outlives its section counts as nothing: a Lock on it is an outermost one,
// outside the section that has the claim now.
func TestALockOnAnEndedSectionIsOutermost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		section, h := st.Lock(st.Ctx)
		in := st.HandOver(h, st.Queue(st.Ctx))
		kept := context.WithoutCancel(section)
		_, _, err := st.Mutex.TryLock(kept)
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		next := st.Queue(kept)
		in = st.HandOver(in.Hold, next)
		if in.Ctx.Err() != nil {
			t.Error("the section on a kept context has ended")
		}
		must(t, in.Hold.Unlock())
		locktest.NothingLeft(t, s, st.Session)
	})
}

// The last Unlock of a section and a nested Lock race: either the section goes on, or the Lock
// is an outermost one. Never is it in beside the waiter that the claim is handed over to.
func TestTheLastUnlockRacesANestedLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		var inside atomic.Int32
		enter := func(h *rlock.Hold) error {
			if inside.Add(1) != 1 {
				t.Error("two sections are open")
			}
			runtime.Gosched()
			inside.Add(-1)
			return h.Unlock()
		}
		rounds := 200
		if testing.Short() {
			rounds = 60
		}
		for i := range rounds {
			section, h := st.Lock(st.Ctx)
			next := locktest.Go(func() error {
				_, h, err := st.Mutex.Lock(st.Ctx)
				if err != nil {
					return err
				}
				return enter(h)
			})
			redistest.Eventually(t, 10*time.Second, "a waiter", func() bool { return locktest.WaitersOf(st.Session, st.Name) > 0 })
			nested := locktest.Go(func() error {
				_, h, err := st.Mutex.Lock(context.WithoutCancel(section))
				if err != nil {
					return err
				}
				return enter(h)
			})
			for range i {
				runtime.Gosched()
			}
			must(t, h.Unlock())
			must(t, locktest.Get(t, nested, 10*time.Second, "the nested Lock"))
			must(t, locktest.Get(t, next, 10*time.Second, "the waiter"))
		}
		locktest.NothingLeft(t, s, st.Session)
		if lost := st.Losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// When a section begins all contexts of the one before it have ended.
func TestASectionBeginsWhenTheContextsBeforeItHaveEnded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		for range 20 {
			section, h := st.Lock(st.Ctx)
			var derived []context.Context
			for range 1000 { // to cancel them takes a moment
				ctx, cancel := context.WithCancel(section)
				defer cancel()
				derived = append(derived, ctx)
			}
			late := make(chan int, 1)
			got := locktest.Go(func() error {
				return st.Mutex.Do(st.Ctx, func(context.Context) error {
					n := 0
					for _, ctx := range derived {
						if ctx.Err() == nil {
							n++
						}
					}
					late <- n
					return nil
				})
			})
			redistest.Eventually(t, 5*time.Second, "a waiter", func() bool { return locktest.WaitersOf(st.Session, st.Name) > 0 })
			must(t, h.Unlock())
			must(t, locktest.Get(t, got, 5*time.Second, "the next section"))
			if n := <-late; n > 0 {
				t.Fatalf("%d contexts of the section before had not ended", n)
			}
		}
		locktest.NothingLeft(t, s, st.Session)
	})
}

// The context of section 1 has ended, so that renewal has stopped. Section 2 takes the claim
// over, and it is renewed.
func TestASectionThatTakesAnUnrenewedClaimOverIsRenewed(t *testing.T) {
	locktest.Leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *locktest.Passes) {
		ctx, cancel := context.WithCancel(context.Background())
		_, h, err := rlock.New(ses, "x").Lock(ctx)
		must(t, err)
		locktest.Unhurried(ses, "x")
		next := locktest.GoLock(rlock.New(ses, "x"), context.Background())
		synctest.Wait()
		cancel()
		time.Sleep(8 * time.Second) // the renewal was due
		if ttl := m.TTL("x"); ttl != 12*time.Second {
			t.Errorf("the lease in Redis is over in %v; it was renewed for a context that had ended", ttl)
		}
		must(t, h.Unlock())
		in := <-next
		must(t, in.Err)
		for range 60 {
			time.Sleep(10 * time.Second)
			if in.Ctx.Err() != nil || in.Hold.Remaining() < 10*time.Second {
				t.Fatalf("%v can be trusted; the section's end: %v", in.Hold.Remaining(), context.Cause(in.Ctx))
			}
		}
		must(t, in.Hold.Unlock())
		if p.Count() != 1 {
			t.Errorf("%d hand-overs, want 1", p.Count())
		}
	})
}

// Trust ends while the section is still at work. Its key is released only when it unlocks, so
// that the next owner comes in no sooner than then or when the lease ends.
func TestALostClaimStandsUntilItsSectionIsUnlocked(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 1500 * time.Millisecond})
		other := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(within(t, 30*time.Second))
		must(t, err)
		p.BlackHole(true)
		must(t, s.Do(t, "PEXPIRE", name, "60000").Error()) // else the lease is over too soon after
		locktest.Ends(t, section, 5*time.Second, rlock.ErrLost)
		must(t, s.Do(t, "PEXPIRE", name, "60000").Error())
		p.BlackHole(false)
		must(t, rlock.New(ses, name+"2").Do(within(t, 20*time.Second), func(context.Context) error { return nil }))
		locktest.Quiet(t, ses)
		if n := locktest.Field(t, s, name, h.Owner()); n != "1" {
			t.Errorf("Redis counts %q holds of a section that is still at work", n)
		}
		_, _, err = rlock.New(other, name).TryLock(within(t, 5*time.Second))
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		redistest.Eventually(t, 5*time.Second, "the lock is free", func() bool { return locktest.Free(t, s, name) })
	})
}
