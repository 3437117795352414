package fairlock_test

import (
	"strconv"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
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

// The token that a grant draws has the end that its waiters have asked for, before they are heard
// of again; and the scripts of a run keep it for longer than the lock.
func TestGrantedTokensEnd(t *testing.T) {
	end := func(a []string) []string { return append(a, "5000000") }
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			what, script string
			state        [][]string
			args         []string
			want         int64 // s; a grant is kept for a quarter of the QueueLease of 1000 s
		}{
			{"a free lock is taken", "acquire", nil, end(enterFenced(e1, "3")), 5300},
			{"it is taken again", "acquire", set("SET token 7 PX 9000000"), end(enterFenced(e1, "3")), 9000},
			{"a named owner is in", "acquire", set("HSET lock ann 1", "PEXPIRE lock 500000", "SADD ids i1", "SET token 42"), end(try("ann", "1", "i9")), 5500},
			{"the caller is let in", "acquire", set(append(waiting(fresh, e1, fenced, e2, fenced), "SET token 7")...), end(enterFenced(e1, "1")), 5300},
			{"another run is let in", "acquire", set(append(waiting(fresh, e2, fenced), "HSET waiters token 5000000")...), try("A1", "0", ""), 5250},
			{"a release lets it in", "release", set(append(waiting(fresh, e2, fenced), "HSET waiters token 5000000", "HSET lock A1 1", "PEXPIRE lock 60000")...), args("A1", e1), 5250},
			{"a heartbeat lets it in", "heartbeat", set(append(waiting(fresh, e2, fenced), "HSET waiters token 5000000")...), args("A", life, e2), 5250},
			{"no end was asked for", "release", set(append(waiting(fresh, e2, fenced), "HSET lock A1 1", "PEXPIRE lock 60000")...), args("A1", e1), -1},
		} {
			s.FlushAll(t)
			for _, cmd := range c.state {
				must(t, s.Do(t, cmd...).Error())
			}
			eval := append([]string{"EVAL", fairlock.ScriptSources()[c.script], strconv.Itoa(len(keys))}, append(keys, c.args...)...)
			must(t, s.Do(t, eval...).Error())
			if got := ttl(t, s, "token"); got != c.want {
				t.Errorf("%s: the token lives for %d s, want %d: %s", c.what, got, c.want, locktest.Describe(t, s))
			}
		}
		// What waits says for how long, and takes it along when it leaves.
		s.FlushAll(t)
		must(t, s.Do(t, "HSET", "lock", "other", "1").Error())
		run := func(script string, a []string) {
			must(t, s.Do(t, append([]string{"EVAL", fairlock.ScriptSources()[script], strconv.Itoa(len(keys))}, append(keys, a...)...)...).Error())
		}
		run("acquire", end(enterFenced(e1, "1")))
		if got, err := s.Do(t, "HGET", "waiters", "token").ToString(); err != nil || got != "5000000" {
			t.Errorf("what is known of the queue has an end of %q, %v", got, err)
		}
		run("release", args("A1", e1))
		if got := locktest.Describe(t, s); got != "lock{other:1}" {
			t.Errorf("when the waiter had left Redis has %s", got)
		}
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
		for i, next := range []<-chan locked{a, b, c} {
			if held.hold.Token() != int64(i+1) {
				t.Errorf("section %d has token %d", i+1, held.hold.Token())
			}
			if got := ttl(t, s, "redisson_lock_token:{x}"); got < 3 || got > 5 {
				t.Errorf("in section %d the token lives for %d s", i+1, got)
			}
			unlock(t, held)
			held = granted(t, next, patience, "the next")
		}
		if held.hold.Token() != 4 {
			t.Errorf("the last section has token %d", held.hold.Token())
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
