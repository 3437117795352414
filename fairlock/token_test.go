package fairlock_test

import (
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The session that lets a fenced waiter in need not know that it is fenced: an operator's tool.
func TestFencedWaiterGetsATokenFromAnybody(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a := dial(t, s, rlock.Config{})
		fenced := fairlock.New(a, "x", rlock.Fenced())
		first := lock(t, ctx, fenced)
		next := goQueued(t, ctx, fenced, 1)
		_, err := fairlock.New(a, "x").ForceUnlock(ctx)
		must(t, err)
		l := granted(t, next, 5*time.Second, "the waiter")
		if l.hold.Token() <= first.hold.Token() {
			t.Errorf("token %d after %d", l.hold.Token(), first.hold.Token())
		}
		unlock(t, l)
	})
}

// Each caller is told of an unusable token, and nothing is held afterwards.
func TestUnusableTokenIsAnError(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"1.5", "9223372036854775807", "0x10"} {
		t.Run(token, func(t *testing.T) {
			each(t, func(t *testing.T, s *redistest.Server) {
				a := dial(t, s, rlock.Config{})
				m := fairlock.New(a, "x", rlock.Fenced())
				ctx := within(t, patience)
				must(t, s.Do(t, "SET", "redisson_lock_token:{x}", token).Error())
				_, _, err := m.TryLock(ctx)
				_, _, err2 := m.Lock(ctx, rlock.Wait(2*time.Second))
				for _, err := range []error{err, err2} {
					if err == nil || !hasText(err, "token") {
						t.Errorf("got %v, want an error that speaks of the token", err)
					}
				}
				if st, err := m.State(ctx); err != nil || len(st.Owners) != 0 {
					t.Errorf("State: %v, %v; no caller was told that it holds it", st, err)
				}
			})
		})
	}
}

// A waiter is told when its token becomes unusable while it waits, and does not keep out
// those behind it.
func TestTokenSpoiledWhileWaiting(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b := dial(t, s, short(s)), dial(t, s, short(s))
		first := lock(t, ctx, fairlock.New(a, "x", rlock.Fenced()))
		next := goQueued(t, ctx, fairlock.New(b, "x", rlock.Fenced()), 1)
		plain := goQueued(t, ctx, fairlock.New(a, "x"), 2)
		must(t, s.Do(t, "SET", "redisson_lock_token:{x}", "abc").Error())
		unlock(t, first)
		l := locktest.Get(t, next, patience, "the fenced waiter is told")
		if l.err == nil {
			t.Error("no error")
		}
		unlock(t, granted(t, plain, patience, "the one behind"))
	})
}
