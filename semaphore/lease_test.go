package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Permits are renewed for as long as they are held; with a fixed lease they are not, and
// end by themselves. Extend moves that end.
func TestLeases(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: s.Slowed(time.Second)})
		ctx := within(t, 60*time.Second)
		m := semaphore.New(ses, "x", 6)
		section, auto, err := m.Acquire(ctx, 3)
		must(t, err)
		fixed, p, err := m.Acquire(ctx, 2, rlock.Lease(time.Minute))
		must(t, err)
		if left := p.Remaining(); left < 50*time.Second || left > time.Minute {
			t.Errorf("Remaining %v", left)
		}
		is(t, "Extend of renewed permits", auto.Extend(ctx, time.Minute), rlock.ErrArgument)
		must(t, p.Extend(ctx, s.Slowed(2300*time.Millisecond)))
		locktest.Ends(t, fixed, 20*time.Second, rlock.ErrLost)
		is(t, "Release of expired permits", p.Release(), rlock.ErrLost)
		is(t, "a second one", p.Release(), rlock.ErrNotHeld)
		if section.Err() != nil { // more than two leases old
			t.Errorf("the renewed ones were lost: %v", context.Cause(section))
		}
		redistest.Eventually(t, 5*time.Second, "two to come back", func() bool {
			n, err := m.Available(ctx)
			must(t, err)
			return n == 3
		})
		must(t, auto.Release())
		available(t, ctx, m, 6)
		if cause := context.Cause(section); !errors.Is(cause, rlock.ErrReleased) {
			t.Errorf("the section ended with %v", cause)
		}
	})
}

// A release of permits that expired a moment ago, before the library noticed, says so and
// changes nothing, and neither does one that comes when others have them (R25).
func TestReleaseOfExpiredPermitsChangesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, slow()), dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		m := semaphore.New(a, "x", 2)
		section, p, err := m.Acquire(ctx, 2)
		must(t, err)
		for _, id := range raw(p) { // as if the hour were over
			must(t, s.Do(t, "ZADD", zset("x"), "5", id).Error())
		}
		_, next, err := semaphore.New(b, "x", 2).TryAcquire(ctx, 1)
		must(t, err)
		before := locktest.Describe(t, s)
		is(t, "Release", p.Release(), rlock.ErrLost)
		if got := locktest.Describe(t, s); got != before {
			t.Errorf("it made %s of %s", got, before)
		}
		if section.Err() == nil {
			t.Error("the section goes on")
		}
		must(t, next.Release())
		available(t, ctx, m, 2)
	})
}

// Who is behind one that gets in, and does not ask since nothing is left, still looks when
// the next permit expires: what was known of that before may be out of date.
func TestExpiredPermitsLetTheNextWaiterIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{Lease: time.Hour, PollFloor: time.Hour, Trace: trace})
		other := semaphore.New(dial(t, s, slow()), "x", 2)
		ctx := within(t, 20*time.Second)
		_, p, err := other.Acquire(ctx, 1)
		must(t, err)
		_, dead, err := other.Acquire(ctx, 1)
		must(t, err)
		m := semaphore.New(ses, "x", 2)
		first := acquire(ctx, m, 1)
		locktest.Get(t, waiting, 10*time.Second, "the first")
		second := acquire(ctx, m, 1)
		locktest.Get(t, waiting, 10*time.Second, "the second")
		soon := fmt.Sprint(time.Now().Add(1700 * time.Millisecond).UnixMilli())
		must(t, s.Do(t, "ZADD", zset("x"), soon, raw(dead)[0]).Error())
		must(t, p.Release())
		g := locktest.Get(t, first, 10*time.Second, "the first one's permit")
		must(t, g.err)
		h := locktest.Get(t, second, 10*time.Second, "the second one's permit")
		must(t, h.err)
		must(t, g.p.Release())
		must(t, h.p.Release())
	})
}

// Waiters need no message to get what expires.
func TestExpiredPermitsLetWaitersIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{PollFloor: time.Hour})
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 2)
		must(t, s.Do(t, "SET", "x", "0").Error())
		soon := fmt.Sprint(time.Now().Add(400 * time.Millisecond).UnixMilli())
		must(t, s.Do(t, "ZADD", zset("x"), soon, "\x00\xffjava", soon, "dead").Error())
		_, p, err := m.Acquire(ctx, 2)
		must(t, err)
		must(t, p.Release())
	})
}

// A caller that comes while the answer to the only one is awaited asks for itself when it has come:
// what that answer leaves is not enough for it, and it does not tell when the next permit expires. (The only one
// has a lease of its own: it is called by the release, and asks.)
func TestExpiredPermitsLetInWhoCameDuringAnAttempt(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, 3, slow())
		other := semaphore.New(dial(t, s, slow()), "x", 3)
		_, dead, err := other.Acquire(st.ctx, 1)
		must(t, err)
		_, p, err := other.Acquire(st.ctx, 2)
		must(t, err)
		first := st.queue(st.ctx, 1, rlock.Lease(time.Hour))
		soon := fmt.Sprint(time.Now().Add(1700 * time.Millisecond).UnixMilli())
		must(t, s.Do(t, "ZADD", zset("x"), soon, raw(dead)[0]).Error())
		seen, release := st.p.HoldReply(locktest.Runs(src["acquire"]))
		must(t, p.Release())
		locktest.Get(t, seen, 10*time.Second, "the answer to the first")
		second := st.queue(st.ctx, 2)
		release()
		g := st.in(first)
		must(t, st.in(second).p.Release())
		must(t, g.p.Release())
	})
}
