package fairlock_test

import (
	"fmt"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A forced unlock ends the holder's section at once and lets the first waiter in, with no
// clock in between.
func TestForcedUnlock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b, c := dial(t, s, silent()), dial(t, s, silent()), dial(t, s, silent())
		first := lock(t, ctx, fairlock.New(a, "x"))
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		last := goQueued(t, ctx, fairlock.New(a, "x"), 2)
		operator := fairlock.New(c, "x")
		if forced, err := operator.ForceUnlock(ctx); err != nil || !forced {
			t.Fatalf("ForceUnlock: %v, %v", forced, err)
		}
		ends(t, first.ctx, patience, rlock.ErrLost)
		l := granted(t, next, patience, "the first waiter")
		is(t, "the former holder's Unlock", first.hold.Unlock(), rlock.ErrLost)
		waits(t, last, "the last")
		unlock(t, l)
		unlock(t, granted(t, last, patience, "the last"))
		if forced, err := operator.ForceUnlock(ctx); err != nil || forced {
			t.Errorf("ForceUnlock of a free lock: %v, %v", forced, err)
		}
		nothingLeft(t, s)
	})
}

// A forced unlock reaches an owner that has just been let in by message.
func TestForcedUnlockAfterAHandOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b := dial(t, s, silent()), dial(t, s, silent())
		m := fairlock.New(a, "x")
		l := lock(t, ctx, m)
		for i := range 10 {
			next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
			forced, err := m.ForceUnlock(ctx)
			must(t, err)
			if !forced {
				t.Fatalf("round %d: nothing was forced", i)
			}
			ends(t, l.ctx, patience, rlock.ErrLost)
			is(t, "Unlock", l.hold.Unlock(), rlock.ErrLost)
			l = granted(t, next, patience, "the next")
		}
		unlock(t, l)
		nothingLeft(t, s)
	})
}

// The key is deleted, alone or with everything: the holder's section ends within a renewal
// interval, and the waiters go on (in their order, if the queue is still there) (R1).
func TestKeyDeleted(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprint("flush=", all), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, 60*time.Second)
				cfg := short(s)
				cfg.Lease /= 2
				a, b := dial(t, s, cfg), dial(t, s, cfg)
				first := lock(t, ctx, fairlock.New(a, "x"))
				next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
				last := goQueued(t, ctx, fairlock.New(a, "x"), 2)
				if all {
					s.FlushAll(t)
				} else {
					must(t, s.Do(t, "DEL", "x").Error())
				}
				ends(t, first.ctx, cfg.Lease/3+s.Slack(), rlock.ErrLost)
				is(t, "Unlock", first.hold.Unlock(), rlock.ErrLost)
				if !all {
					l := granted(t, next, patience, "the first waiter")
					waits(t, last, "the last")
					unlock(t, l)
					unlock(t, granted(t, last, patience, "the last"))
				} else {
					for range 2 {
						select {
						case l := <-next:
							must(t, l.err)
							unlock(t, l)
						case l := <-last:
							must(t, l.err)
							unlock(t, l)
						case <-time.After(patience):
							t.Fatal("a waiter is stuck")
						}
					}
				}
				nothingLeft(t, s)
			})
		})
	}
}

// Close wakes the session's waiters with ErrClosed, takes their places away, and releases
// what is held: another session's waiter gets it at once (R12).
func TestCloseHandsOn(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b := dial(t, s, silent()), dial(t, s, silent())
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		var own []<-chan locked
		for i := range 3 {
			own = append(own, goQueued(t, ctx, m, i+1))
		}
		other := goQueued(t, ctx, fairlock.New(b, "x"), 4)
		for range 2 {
			must(t, a.Close())
		}
		ended(t, first.ctx, rlock.ErrClosed)
		for i, c := range own {
			l := locktest.Get(t, c, patience, fmt.Sprint("waiter ", i, " returns"))
			is(t, "a waiter of the closed session", l.err, rlock.ErrClosed)
		}
		l := granted(t, other, patience, "the other session's waiter")
		if n, err := fairlock.New(b, "x").Waiters(ctx); err != nil || n != 0 {
			t.Errorf("%d waiters are left, %v", n, err)
		}
		is(t, "Unlock", first.hold.Unlock(), rlock.ErrClosed)
		_, err := m.Waiters(ctx)
		is(t, "Waiters", err, rlock.ErrClosed)
		_, _, err = m.Lock(ctx)
		is(t, "Lock", err, rlock.ErrClosed)
		_, _, err = m.TryLock(ctx)
		is(t, "TryLock", err, rlock.ErrClosed)
		unlock(t, l)
		nothingLeft(t, s)
	})
}

// Of an owner that is shared, what one session has lost does not bring the end of what the
// other has taken anew closer.
func TestALostHoldDoesNotCutTheOwnersNextLife(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := rlock.WithOwner(within(t, patience), "me")
		a, b := fairlock.New(dial(t, s, silent()), "x"), fairlock.New(dial(t, s, silent()), "x")
		gone := lock(t, ctx, a, rlock.Lease(3*time.Second))
		must(t, s.Do(t, "DEL", "x").Error())
		there := lock(t, ctx, b, rlock.Lease(time.Minute))
		stands := func(what string) {
			t.Helper()
			ttl, err := s.Do(t, "PTTL", "x").AsInt64()
			must(t, err)
			if left := there.hold.Remaining(); left > time.Duration(ttl)*time.Millisecond {
				t.Errorf("%s: trusted for %v, Redis keeps it for %d ms", what, left, ttl)
			}
		}
		unlock(t, lock(t, ctx, a, rlock.Lease(3*time.Second)))
		stands("the other session was in, and left")
		is(t, "Extend of what was lost", gone.hold.Extend(ctx, 2*time.Second), rlock.ErrLost)
		stands("Extend")
		is(t, "Unlock of what was lost", gone.hold.Unlock(), rlock.ErrLost)
		unlock(t, there)
		nothingLeft(t, s)
	})
}
