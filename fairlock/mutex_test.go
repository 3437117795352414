package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An owner re-enters, in its session and under its name in another, although others wait;
// the lock is free for them when all its holds have ended.
func TestOwnersReenterAlthoughOthersWait(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		a, b, c := dial(t, s, silent()), dial(t, s, silent()), dial(t, s, silent())
		me := rlock.WithOwner(ctx, "me")
		section, here, err := fairlock.New(a, "x").Lock(me)
		must(t, err)
		next := goQueued(t, ctx, fairlock.New(c, "x"), 1)
		_, nested, err := fairlock.New(a, "x").Lock(section)
		must(t, err)
		_, there, err := fairlock.New(b, "x").Lock(me)
		must(t, err)
		_, again, err := fairlock.New(b, "x").TryLock(me)
		must(t, err)
		if st, err := fairlock.New(c, "x").State(ctx); err != nil || st.Owners["me"] != 4 {
			t.Errorf("State: %v, %v; want 4 holds of me", st, err)
		}
		for _, h := range []*rlock.Hold{here, again, nested, there} {
			waits(t, next, "the other owner")
			must(t, h.Unlock())
		}
		unlock(t, granted(t, next, patience, "the other owner"))
		nothingLeft(t, s)
	})
}

// A named owner that waits in two sessions: what lets one in is enough for both.
func TestNamedOwnerWaitsTwice(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		cfg := short(s)
		cfg.Lease = time.Minute
		a, b := dial(t, s, cfg), dial(t, s, cfg)
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		me := rlock.WithOwner(ctx, "odd owner: 3:\x00\xffé")
		one := goQueued(t, me, m, 1)
		other := goQueued(t, ctx, m, 2)
		two := goQueued(t, me, fairlock.New(b, "x"), 3)
		unlock(t, first)
		l1 := granted(t, one, patience, "the owner here")
		l2 := granted(t, two, patience, "the owner there")
		waits(t, other, "the other owner")
		unlock(t, l1)
		waits(t, other, "the other owner")
		unlock(t, l2)
		unlock(t, granted(t, other, patience, "the other owner"))
		nothingLeft(t, s)
	})
}

// Tokens grow with every acquisition, whichever session grants it, and stay the same inside (R3).
func TestFencingTokensGrow(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		a, b := dial(t, s, silent()), dial(t, s, silent())
		var last int64
		check := func(l locked, how string) {
			t.Helper()
			if got := l.hold.Token(); got <= last {
				t.Errorf("%s: token %d after %d", how, got, last)
			}
			last = l.hold.Token()
			_, nested, err := fairlock.New(a, "x", rlock.Fenced()).Lock(l.ctx)
			must(t, err)
			if nested.Token() != last {
				t.Errorf("%s: a nested hold has token %d, want %d", how, nested.Token(), last)
			}
			must(t, nested.Unlock())
		}
		m := fairlock.New(a, "x", rlock.Fenced())
		l := lock(t, ctx, m)
		check(l, "a free lock")
		for i := range 5 {
			next := goQueued(t, ctx, fairlock.New(b, "x", rlock.Fenced()), 1)
			behind := goQueued(t, ctx, m, 2, rlock.Lease(time.Minute))
			if i%2 == 0 {
				unlock(t, l)
			} else {
				_, err := m.ForceUnlock(ctx)
				must(t, err)
			}
			l = granted(t, next, patience, "the next")
			if got := l.hold.Token(); got <= last {
				t.Errorf("direct grant: token %d after %d", got, last)
			}
			last = l.hold.Token()
			unlock(t, l)
			l = granted(t, behind, patience, "the last")
			check(l, "direct grant to a fixed lease")
		}
		unlock(t, l)
		if l := lock(t, ctx, fairlock.New(a, "y")); l.hold.Token() != 0 {
			t.Errorf("token %d without Fenced", l.hold.Token())
		} else {
			unlock(t, l)
		}
		nothingLeft(t, s, "redisson_lock_token:{x}")
	})
}

// A hold with a fixed lease ends when that has passed, and the waiter has the lock right
// then: without a message, a release, or a heartbeat.
func TestFixedLeaseEndsByItself(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		a, b := dial(t, s, silent()), dial(t, s, silent())
		const lease = 600 * time.Millisecond
		began := time.Now()
		first := lock(t, ctx, fairlock.New(a, "x"), rlock.Lease(lease))
		took := time.Now()
		next := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		l := granted(t, next, patience, "the waiter")
		ended(t, first.ctx, rlock.ErrLost)
		if l.at.Sub(began) < lease-2*time.Millisecond || l.at.Sub(took) > lease+s.Slack() {
			t.Errorf("the waiter was let in between %v and %v after the lease of %v began", l.at.Sub(took), l.at.Sub(began), lease)
		}
		is(t, "Unlock of a hold that ran out", first.hold.Unlock(), rlock.ErrLost)
		if l.ctx.Err() != nil {
			t.Errorf("the late Unlock ended the successor's section: %v", context.Cause(l.ctx))
		}
		unlock(t, l)
		nothingLeft(t, s)
	})
}

// Any name and any prefix works, with all that can be done (R29).
func TestOddNames(t *testing.T) {
	names := []string{
		"a}b", "a{b", "{}x", "{b}", "a{b}c", "}{", "{", "}", "{}", "{{b}}", " ", "two words", "tab\tand\nline",
		"\x00\xff\xfe{\x80", "ключ-锁-🔒", strings.Repeat("k", 1024), "a:b:c", "*?[x]", "3:abc", "%d%s",
	}
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		cfg := silent()
		cfg.Prefix = "p{re}: "
		for _, cfg := range []rlock.Config{silent(), cfg} {
			a, b := dial(t, s, cfg), dial(t, s, cfg)
			for _, name := range names {
				m := fairlock.New(a, name, rlock.Fenced())
				first := lock(t, ctx, m)
				next := goQueued(t, ctx, fairlock.New(b, name, rlock.Fenced()), 1)
				unlock(t, first)
				l := granted(t, next, patience, fmt.Sprintf("the waiter for %q", name))
				if forced, err := m.ForceUnlock(ctx); err != nil || !forced {
					t.Errorf("%q: ForceUnlock: %v, %v", name, forced, err)
				}
				ends(t, l.ctx, patience, rlock.ErrLost)
				must(t, s.Do(t, "DEL", keysOf(t, s, "redisson_lock_token")).Error())
			}
			nothingLeft(t, s)
		}
	})
}

// keysOf returns the only key that begins like that.
func keysOf(t testing.TB, s *redistest.Server, prefix string) string {
	t.Helper()
	for _, k := range s.Keys(t) {
		if strings.HasPrefix(k, prefix) {
			return k
		}
	}
	t.Fatalf("no key %q", prefix)
	return ""
}

// Do releases when fn returns, panics or calls Goexit, and the next one is let in (R11).
func TestDoReleasesWhateverHappens(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		m := fairlock.New(dial(t, s, silent()), "x")
		oops := errors.New("oops")
		for how, fn := range map[string]func(){"return": func() {}, "panic": func() { panic(oops) }, "Goexit": runtime.Goexit} {
			in, goOn, out := make(chan struct{}), make(chan struct{}), make(chan any, 1)
			go func() {
				defer func() { out <- recover() }()
				_ = m.Do(ctx, func(context.Context) error { close(in); <-goOn; fn(); return nil })
			}()
			<-in
			next := goQueued(t, ctx, m, 1)
			close(goOn)
			unlock(t, granted(t, next, patience, "the next after "+how))
			if got := <-out; (how == "panic") != (got == any(oops)) {
				t.Errorf("%s: recovered %v", how, got)
			}
		}
		is(t, "fn's error", m.Do(ctx, func(context.Context) error { return oops }), oops)
		nothingLeft(t, s)
	})
}

// The owner is a value: a hold is unlocked from any goroutine, and goroutines without a
// common context are owners of their own (R28). Unlock twice is ErrNotHeld (R9).
func TestUnlockFromAnotherGoroutine(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		m := fairlock.New(dial(t, s, silent()), "x")
		first := lock(t, ctx, m)
		_, _, err := m.TryLock(ctx)
		is(t, "TryLock on a context without the owner", err, rlock.ErrNotAcquired)
		next := goQueued(t, ctx, m, 1)
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- first.hold.Unlock() }()
		}
		errs := []error{locktest.Get(t, done, patience, "Unlock"), locktest.Get(t, done, patience, "Unlock")}
		slices.SortFunc(errs, func(a, b error) int { return len(fmt.Sprint(a)) - len(fmt.Sprint(b)) })
		must(t, errs[0])
		is(t, "the second Unlock", errs[1], rlock.ErrNotHeld)
		l := granted(t, next, patience, "the waiter")
		is(t, "a third Unlock", first.hold.Unlock(), rlock.ErrNotHeld)
		if l.ctx.Err() != nil {
			t.Error("the successor's section has ended")
		}
		unlock(t, l)
		nothingLeft(t, s)
	})
}
