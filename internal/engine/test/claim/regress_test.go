package claim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// Each test here is named after something that was wrong once.

// "a" and "{a}" share a channel by Redisson's naming rules, and nothing else.
func TestNamesThatShareAChannelAreTwoLocks(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		section, h, err := rlock.New(ses, "a").Lock(ctx)
		must(t, err)
		_, h2, err := rlock.New(ses, "{a}").Lock(ctx)
		must(t, err)
		must(t, section.Err())
		must(t, h.Unlock())
		must(t, h2.Unlock())
		locktest.NothingLeft(t, s, ses)
	})
}

// Unlocking an inner hold whose lease ran out says so, and leaves the outer one alone.
func TestUnlockOfARunOutInnerHoldLeavesTheOuter(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		m := rlock.New(ses, "x")
		section, outer, err := m.Lock(ctx)
		must(t, err)
		inner, h1, err := m.Lock(section, rlock.Lease(50*time.Millisecond))
		must(t, err)
		<-inner.Done()
		_, h2, err := m.Lock(section)
		must(t, err)
		must(t, h2.Unlock())
		if err := h1.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of the hold that ran out: %v", err)
		}
		must(t, section.Err())
		must(t, outer.Unlock())
		locktest.NothingLeft(t, s, ses)
	})
}

// A release behind an Unlock that got no answer does not free the same owner's next
// hold: that begins only when the release is done.
func TestReleaseInTheBackgroundSparesTheOwnersNextHold(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: time.Second})
		b := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		outer, h, err := rlock.New(a, "outer").Lock(ctx)
		must(t, err)
		for range 5 {
			_, x, err := rlock.New(a, "x").Lock(outer)
			must(t, err)
			_, answer := p.HoldReply(faulttest.HasArg("redisson_lock__channel:{x}"))
			if err := x.Unlock(); err == nil {
				t.Fatal("Unlock without an answer succeeded")
			}
			answer()
			section, x, err := rlock.New(a, "x").Lock(outer)
			must(t, err)
			redistest.Eventually(t, 5*time.Second, "the background to be quiet", func() bool {
				_, _, _, _, active := locktest.Books(a)
				return active == 0
			})
			if _, _, err := rlock.New(b, "x").TryLock(ctx); !errors.Is(err, rlock.ErrNotAcquired) || section.Err() != nil {
				t.Fatalf("another owner: %v; the section: %v", err, section.Err())
			}
			must(t, x.Unlock())
		}
		must(t, h.Unlock())
	})
}

// An owner holds the lock in two sessions. Resends of one of them count neither its own holds
// twice nor the other's away.
func TestResendsOfAnOwnerOfTwoSessions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := rlock.WithOwner(within(t, 30*time.Second), "me")
		for _, drop := range []string{"acquire", "release"} {
			a, p := locktest.DialProxy(t, s, rlock.Config{})
			b := dial(t, s, rlock.Config{})
			name := "x-" + drop
			far, there, err := rlock.New(b, name).Lock(ctx)
			must(t, err)
			if drop == "acquire" {
				p.DropReply(faulttest.HasArg(name))
			}
			_, here, err := rlock.New(a, name).Lock(ctx)
			must(t, err)
			if got := locktest.Field(t, s, name, "me"); got != "2" {
				t.Errorf("count %q for two holds", got)
			}
			if drop == "release" {
				p.DropReply(faulttest.HasArg(name))
			}
			must(t, here.Unlock())
			if got := locktest.Field(t, s, name, "me"); got != "1" || far.Err() != nil {
				t.Errorf("%s: count %q for the one hold that is left; its section: %v", drop, got, far.Err())
			}
			must(t, there.Unlock())
			if got := locktest.Field(t, s, name, "me"); got != "" {
				t.Errorf("%s: count %q for none", drop, got)
			}
		}
	})
}

// Extend moves the end of this session's hold closer, not of those that others have
// under the same owner.
func TestExtendDoesNotCutWhatOthersHold(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "me")
		section, h, err := rlock.New(a, "x").Lock(me, rlock.Lease(20*time.Second))
		must(t, err)
		_, there, err := rlock.New(b, "x").Lock(me)
		must(t, err)
		must(t, h.Extend(ctx, 300*time.Millisecond))
		<-section.Done()
		if n, _ := s.Do(t, "PTTL", "x").AsInt64(); n < 19000 {
			t.Errorf("PTTL %d: the other session's lease was cut", n)
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of the hold that ran out: %v", err)
		}
		must(t, there.Unlock())
	})
}

// Extend moves the end of one hold closer, and leaves a nested one the whole of its fixed lease.
func TestExtendDoesNotCutANestedHold(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, ctx := rlock.New(dial(t, s, rlock.Config{}), "x"), within(t, time.Minute)
		section, outer, err := m.Lock(ctx, rlock.Lease(20*time.Second))
		must(t, err)
		began := time.Now()
		_, inner, err := m.Lock(section, rlock.Lease(10*time.Second))
		must(t, err)
		must(t, outer.Extend(ctx, 300*time.Millisecond))
		n, err := s.Do(t, "PTTL", "x").AsInt64()
		must(t, err)
		if left := 10*time.Second - time.Since(began); time.Duration(n+2)*time.Millisecond < left {
			t.Errorf("PTTL %d: the nested hold asked for %v more", n, left)
		}
		must(t, inner.Unlock())
		_ = outer.Unlock() // perhaps it has run out
	})
}

// Nobody is told of a loss when a lock changes hands while the answer to its release is
// on the way.
func TestHandingOverIsNoLoss(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var mu sync.Mutex
		var losses []string
		ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{Lost: func(e locktrace.Lost) {
			mu.Lock()
			defer mu.Unlock()
			losses = append(losses, e.Reason)
		}}})
		ctx := within(t, 20*time.Second)
		m := rlock.New(ses, "x")
		rounds := 300
		if testing.Short() {
			rounds /= 3
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range rounds {
					if _, h, err := m.TryLock(ctx); err == nil {
						if err := h.Unlock(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		if len(losses) > 0 {
			t.Errorf("%d losses told, the first: %s", len(losses), losses[0])
		}
		locktest.NothingLeft(t, s, ses)
	})
}

// An id of a hold speaks of the life of the lock in which it was given.
func TestHoldOfAnEarlierLifeReleasesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "me")
		_, there, err := rlock.New(b, "x").Lock(me)
		must(t, err)
		must(t, s.Do(t, "DEL", "x").Error())
		section, here, err := rlock.New(a, "x").Lock(me)
		must(t, err)
		if err := there.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of the hold that was deleted: %v", err)
		}
		if got := locktest.Field(t, s, "x", "me"); got != "1" || section.Err() != nil {
			t.Errorf("count %q, section %v", got, section.Err())
		}
		must(t, here.Unlock())
	})
}

// Durations near the largest are refused rather than overflowing, but one may wait for
// ever.
func TestHugeDurations(t *testing.T) {
	s := redistest.Mini(t)
	ses := dial(t, s, rlock.Config{})
	ctx := within(t, 20*time.Second)
	const huge = time.Duration(1<<63 - 1)
	m := rlock.New(ses, "x")
	if _, _, err := m.Lock(ctx, rlock.Lease(huge)); !errors.Is(err, rlock.ErrArgument) {
		t.Errorf("Lease: %v", err)
	}
	_, h, err := m.Lock(ctx, rlock.Wait(huge), rlock.Lease(100*365*24*time.Hour))
	must(t, err)
	if err := h.Extend(ctx, huge); !errors.Is(err, rlock.ErrArgument) {
		t.Errorf("Extend: %v", err)
	}
	if left := h.Remaining(); left < 99*365*24*time.Hour {
		t.Errorf("Remaining() = %v", left)
	}
	must(t, h.Unlock())
	for _, cfg := range []rlock.Config{{Lease: huge}, {ReleaseTimeout: huge}, {PollFloor: huge}, {QueueLease: huge}, {RedissonWatchdog: huge}} {
		if _, err := rlock.Dial(ctx, s.Option(), cfg); !errors.Is(err, rlock.ErrConfig) {
			t.Errorf("%+v: %v", fmt.Sprint(cfg), err)
		}
	}
}

// A named owner whose first context has ended still re-enters with another one: only the
// end of the section ends a nested Lock, not that of the context it began with.
func TestNestedLockAfterTheFirstContextEnded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		m := rlock.New(ses, "x")
		bob := rlock.WithOwner(within(t, 20*time.Second), "bob")
		first, end := context.WithCancel(bob)
		_, h1, err := m.Lock(first)
		must(t, err)
		second, end2 := context.WithCancel(bob)
		defer end2()
		_, h2, err := m.Lock(second)
		must(t, err)
		end()
		section, h3, err := m.Lock(bob)
		if err != nil {
			t.Fatalf("Lock with a context that lives: %v", err)
		}
		_ = section
		for _, h := range []*rlock.Hold{h3, h2, h1} {
			must(t, h.Unlock())
		}
	})
}
