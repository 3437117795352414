package handover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A hand-over sends nothing: the next section inherits the lease, which is renewed when it
// would have been.
func TestHandOverIsRenewed(t *testing.T) {
	locktest.Leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *locktest.Passes) {
		h, next := locktest.TakeTurns(t, ses)
		time.Sleep(6 * time.Second) // the first renewal is due soon
		must(t, h.Unlock())
		in := <-next
		must(t, in.Err)
		synctest.Wait()
		if left := in.Hold.Remaining(); left != 13*time.Second {
			t.Errorf("%v can be trusted; the lock was acquired 6 s ago", left)
		}
		if ttl := m.TTL("x"); ttl != 14*time.Second {
			t.Errorf("the lease in Redis is over in %v", ttl)
		}
		for range 60 { // ten minutes
			time.Sleep(10 * time.Second)
			if in.Ctx.Err() != nil || in.Hold.Remaining() < 10*time.Second || m.TTL("x") < 10*time.Second {
				t.Fatalf("%v can be trusted, the lease in Redis is over in %v; the section's end: %v",
					in.Hold.Remaining(), m.TTL("x"), context.Cause(in.Ctx))
			}
		}
		must(t, in.Hold.Unlock())
		if p.Count() != 1 || len(redistest.LockKeys(m.Keys())) > 0 {
			t.Errorf("%d hand-overs; left in Redis: %q", p.Count(), redistest.LockKeys(m.Keys()))
		}
	})
}

// The next section trusts the lock no longer than the one before could, until a renewal is
// confirmed, and ends when that is over.
func TestHandOverInheritsTheLease(t *testing.T) {
	locktest.Leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *locktest.Passes) {
		h, next := locktest.TakeTurns(t, ses)
		time.Sleep(6 * time.Second)
		m.SetError("BUSY not now")
		must(t, h.Unlock())
		in := <-next
		must(t, in.Err)
		time.Sleep(5 * time.Second)
		if left := in.Hold.Remaining(); left != 8*time.Second || p.Count() != 1 {
			t.Errorf("%v can be trusted of 19 s, 11 s after the last word from Redis; %d hand-overs", left, p.Count())
		}
		time.Sleep(8*time.Second - time.Nanosecond)
		must(t, in.Ctx.Err())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if context.Cause(in.Ctx) != rlock.ErrLost || m.TTL("x") != time.Second {
			t.Errorf("the section ended with cause %v; the lease in Redis is over in %v", context.Cause(in.Ctx), m.TTL("x"))
		}
		m.SetError("")
		locktest.Is(t, "Unlock", in.Hold.Unlock(), rlock.ErrLost)
	})
}

// When Redis comes back in time nothing is lost: the renewal is tried until then.
func TestHandOverWaitsForRedis(t *testing.T) {
	t.Parallel()
	locktest.Leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *locktest.Passes) {
		h, next := locktest.TakeTurns(t, ses)
		m.SetError("BUSY not now")
		must(t, h.Unlock())
		in := <-next
		must(t, in.Err)
		time.Sleep(18 * time.Second)
		m.SetError("")
		time.Sleep(time.Second - time.Millisecond)
		if ttl := m.TTL("x"); ttl < 19*time.Second {
			t.Errorf("the lease in Redis is over in %v", ttl)
		}
		time.Sleep(time.Hour)
		must(t, in.Ctx.Err())
		must(t, in.Hold.Unlock())
	})
}

// When half of what can be trusted has passed without a renewal, for the section's context has
// ended, the claim is not handed over: too little would be left. Else it is renewed at once.
func TestHandOverNeedsHalfALease(t *testing.T) {
	for _, c := range []struct {
		after  time.Duration
		handed int
	}{{9 * time.Second, 1}, {10 * time.Second, 0}} {
		locktest.Leased(t, func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *locktest.Passes) {
			ctx, cancel := context.WithCancel(context.Background())
			_, h, err := rlock.New(ses, "x").Lock(ctx)
			must(t, err)
			locktest.Unhurried(ses, "x")
			next := locktest.GoLock(rlock.New(ses, "x"), context.Background())
			synctest.Wait()
			cancel() // nobody wants a renewal
			time.Sleep(c.after)
			must(t, h.Unlock())
			in := <-next
			must(t, in.Err)
			synctest.Wait()
			if p.Count() != c.handed {
				t.Errorf("%d hand-overs %v after the last word from Redis, want %d", p.Count(), c.after, c.handed)
			}
			if left := in.Hold.Remaining(); left != 19*time.Second || m.TTL("x") != 20*time.Second {
				t.Errorf("%v can be trusted, the lease in Redis is over in %v", left, m.TTL("x"))
			}
			must(t, in.Hold.Unlock())
		})
	}
}
