package fairlock_test

import (
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// ttl returns for how many seconds a key will live: -1 for ever, -2 if it is gone.
func ttl(t testing.TB, s *redistest.Server, key string) int64 {
	t.Helper()
	ms, err := s.Do(t, "PTTL", key).AsInt64()
	must(t, err)
	if ms > 0 {
		ms = (ms + 500) / 1000
	}
	return ms
}

// The token of a waiter that a release has let in has its end from the beginning.
func TestTokensOfWaitersEnd(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		keep := rlock.FencedFor(2 * time.Hour)
		m := fairlock.New(dial(t, s, silent()), "x", keep)
		b := fairlock.New(dial(t, s, silent()), "x", keep)
		first := lock(t, ctx, m)
		next := goQueued(t, ctx, b, 1)
		must(t, s.Do(t, "PERSIST", "redisson_lock_token:{x}").Error()) // as one that another process has made
		unlock(t, first)
		l := granted(t, next, patience, "the waiter")
		if got := ttl(t, s, "redisson_lock_token:{x}"); got < 2*3600 || got > 3*3600 || l.hold.Token() <= first.hold.Token() {
			t.Errorf("token %d behind %d lives for %d s, want two hours more than the lock", l.hold.Token(), first.hold.Token(), got)
		}
		unlock(t, l)
		nothingLeft(t, s, "redisson_lock_token:{x}")
	})
}

// Tokens grow from run to run while they are used; their key ends with its last use.
func TestFairTokenWithAnEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		cfg := rlock.Config{Lease: 3 * time.Second, QueueLease: 4 * time.Second}
		ses, other := dial(t, s, cfg), dial(t, s, cfg)
		ctx := within(t, time.Hour)
		m, n := fairlock.New(ses, "x", rlock.FencedFor(2*time.Second)), fairlock.New(other, "x", rlock.FencedFor(2*time.Second))
		held := lock(t, ctx, m)
		a := goQueued(t, ctx, n, 1)
		b := goQueued(t, ctx, m, 2)
		c := goQueued(t, ctx, m, 3)
		pause(7 * time.Second) // the end passes more than once while the lock is held and waited for
		var last int64
		for i, next := range []<-chan locked{a, b, c} {
			if held.hold.Token() <= last {
				t.Errorf("section %d has token %d behind %d", i+1, held.hold.Token(), last)
			}
			last = held.hold.Token()
			if got := ttl(t, s, "redisson_lock_token:{x}"); got < 3 || got > 5 {
				t.Errorf("in section %d the token lives for %d s", i+1, got)
			}
			unlock(t, held)
			held = granted(t, next, patience, "the next")
		}
		if held.hold.Token() <= last {
			t.Errorf("the last section has token %d behind %d", held.hold.Token(), last)
		}
		unlock(t, held)
		redistest.Eventually(t, 10*time.Second, "everything to be gone", func() bool { return len(s.Keys(t)) == 0 })
		held = lock(t, ctx, m)
		if held.hold.Token() != 1 {
			t.Errorf("after the end of the key the token is %d", held.hold.Token())
		}
		unlock(t, held)
	})
}

// An end that cannot be is an error of each operation.
func TestFairTokenEndThatCannotBe(t *testing.T) {
	ses := dial(t, redistest.Mini(t), rlock.Config{})
	m := fairlock.New(ses, "x", rlock.FencedFor(0))
	_, _, err := m.TryLock(within(t, patience))
	is(t, "TryLock", err, rlock.ErrArgument)
}
