package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// tokenLives returns for how many seconds the fencing token of x will live: -1 for ever, -2 if it
// is gone.
func tokenLives(t testing.TB, s *redistest.Server) int64 {
	t.Helper()
	ms, err := s.Do(t, "PTTL", "redisson_lock_token:{x}").AsInt64()
	must(t, err)
	if ms > 0 {
		ms = (ms + 500) / 1000
	}
	return ms
}

// Every use of a token with an end renews it, so that it outlives the lock by that.
func TestTokenWithAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: 30 * time.Second})
		ctx := within(t, time.Hour)
		m := rlock.New(ses, "x", rlock.FencedFor(time.Minute))
		lives := func(what string, want int64) {
			t.Helper()
			if got := tokenLives(t, s); got != want {
				t.Errorf("%s: the token lives for %d s, want %d", what, got, want)
			}
			must(t, s.Do(t, "PEXPIRE", "redisson_lock_token:{x}", "10000").Error())
		}
		section, h, err := m.Lock(ctx)
		must(t, err)
		lives("Lock", 90)
		_, nested, err := m.Lock(section, rlock.Lease(5*time.Minute))
		must(t, err)
		lives("a nested Lock with a longer lease", 360)
		must(t, nested.Extend(ctx, 10*time.Minute))
		lives("Extend", 660)
		must(t, nested.Unlock())
		must(t, h.Unlock())
		lives("Unlock", 10)
		must(t, s.Do(t, "PERSIST", "redisson_lock_token:{x}").Error()) // as one that Java has made
		_, h, err = m.TryLock(ctx)
		must(t, err)
		if h.Token() != 2 {
			t.Errorf("the second section has token %d", h.Token())
		}
		lives("TryLock", 90)
		must(t, h.Unlock())
		_, h, err = m.Lock(rlock.WithOwner(ctx, "order-17"), rlock.Lease(time.Minute))
		must(t, err)
		lives("Lock of a named owner", 120)
		must(t, h.Extend(ctx, 2*time.Minute))
		lives("Extend of a named owner", 180)
		must(t, h.Unlock())
	})
}

// Renewals keep a token for as long as the lock is held, however short its end is. The end that
// follows a life makes tokens begin again.
func TestRenewalsKeepATokenWithAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: s.Slowed(1500 * time.Millisecond)})
		ctx := within(t, time.Hour)
		m := rlock.New(ses, "x", rlock.FencedFor(time.Second))
		section, h, err := m.Lock(ctx)
		must(t, err)
		nested, inner, err := m.Lock(section) // which is renewed with ids
		must(t, err)
		timer := time.NewTimer(7 * time.Second)
		select {
		case <-nested.Done():
			t.Errorf("the section has ended: %v", context.Cause(section))
		case <-timer.C:
		}
		must(t, inner.Unlock())
		must(t, h.Unlock())
		_, h, err = m.Lock(ctx)
		must(t, err)
		if h.Token() != 2 {
			t.Errorf("after 7 s of use the token is %d", h.Token())
		}
		must(t, h.Unlock())
		redistest.Eventually(t, 10*time.Second+s.Slack(), "everything to be gone", func() bool { return len(s.Keys(t)) == 0 })
		_, h, err = m.Lock(ctx)
		must(t, err)
		if h.Token() != 1 {
			t.Errorf("after the end of the key the token is %d", h.Token())
		}
		must(t, h.Unlock())
	})
}

// A holder that has died, or was stopped, is fenced off: the key outlives its lease.
func TestTokenOutlivesItsHolder(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		dead, next := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{PollFloor: time.Second})
		ctx := within(t, time.Hour)
		_, h, err := rlock.New(dead, "x", rlock.FencedFor(2*time.Second)).Lock(ctx, rlock.Lease(time.Second))
		must(t, err)
		must(t, h.Abandon())
		_, after, err := rlock.New(next, "x", rlock.FencedFor(2*time.Second)).Lock(ctx)
		must(t, err)
		if after.Token() <= h.Token() {
			t.Errorf("the next owner has token %d, that of the dead one is %d", after.Token(), h.Token())
		}
		must(t, after.Unlock())
	})
}

// Sections that are handed over in memory use tokens that are reserved, of a key with an end.
func TestTokensWithAnEndAreHandedOver(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		st.Name = "x"
		st.Mutex = rlock.New(st.Session, st.Name, rlock.FencedFor(time.Minute))
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
		if ttl := tokenLives(t, s); ttl < 60 || ttl > 90 {
			t.Errorf("the token lives for %d s", ttl)
		}
		must(t, c.Hold.Unlock())
	})
}

// An end that cannot be is reported by every operation, and nothing is sent.
func TestTokenEndsThatCannotBe(t *testing.T) {
	s := redistest.Mini(t)
	ses := dial(t, s, rlock.Config{})
	ctx := context.Background()
	for _, d := range []time.Duration{0, -time.Second, 999 * time.Microsecond, 101 * 365 * 24 * time.Hour} {
		m := rlock.New(ses, "x", rlock.FencedFor(d))
		for op, err := range map[string]error{
			"Lock": func() error { _, _, err := m.Lock(ctx); return err }(), "TryLock": func() error { _, _, err := m.TryLock(ctx); return err }(),
			"State": locktest.Second(m.State(ctx)), "ForceUnlock": locktest.Second(m.ForceUnlock(ctx)),
		} {
			if !errors.Is(err, rlock.ErrArgument) || !strings.Contains(err.Error(), "FencedFor("+d.String()+"); it must be at least 1ms and at most") {
				t.Errorf("%v: %s: %v", d, op, err)
			}
		}
	}
	if got := locktest.Describe(t, s); strings.Contains(got, "{x}") {
		t.Errorf("Redis has %s", got)
	}
	for _, d := range []time.Duration{time.Millisecond, 100 * 365 * 24 * time.Hour} {
		_, h, err := rlock.New(ses, "x", rlock.FencedFor(d)).Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
	}
}
