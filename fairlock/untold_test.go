package fairlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// dialMute makes a session of a user who may publish on the channels of locks, but on none of a session.
func dialMute(t *testing.T, s *redistest.Server, cfg rlock.Config) *rlock.Session {
	t.Helper()
	must(t, s.Do(t, "ACL", "SETUSER", "mute", "on", ">secret", "~*", "resetchannels", "&redisson_lock__channel:*", "+@all").Error())
	opt := s.Option()
	opt.Username, opt.Password = "mute", "secret"
	ses, err := rlock.Dial(context.Background(), opt, cfg)
	must(t, err)
	t.Cleanup(func() { must(t, ses.Close()) })
	return ses
}

// Unlock by a user who may not publish on the channels of sessions succeeds. The waiters keep their
// places, and that user's TryLock does not overtake them. The next user who may lets the first one in.
func TestUnlockByAUserWhoMayNotTellTheNextKeepsThePlaces(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ctx := within(t, time.Minute)
	mute, b := dialMute(t, s, silent()), dial(t, s, silent())
	m := fairlock.New(b, "x")
	places := func() string {
		all, err := s.Do(t, "ZRANGEBYSCORE", "relock_line1:{x}", "0", "2.4e15", "WITHSCORES").ToAny()
		must(t, err)
		return fmt.Sprint(all)
	}
	first := lock(t, ctx, fairlock.New(mute, "x"))
	second := goQueued(t, rlock.WithOwner(ctx, "ann"), m, 1)
	third := goQueued(t, ctx, fairlock.New(dial(t, s, silent()), "x"), 2)
	before := places()
	unlock(t, first)
	_, _, err := fairlock.New(mute, "x").TryLock(ctx)
	is(t, "TryLock of the same user", err, rlock.ErrNotAcquired)
	if st, err := m.State(ctx); err != nil || len(st.Owners) != 0 {
		t.Errorf("State: %+v, %v; want no owner", st, err)
	}
	if after := places(); after != before {
		t.Errorf("the queue was %s, and is %s", before, after)
	}
	waits(t, second, "the second")
	waits(t, third, "the third")

	_, _, err = fairlock.New(dial(t, s, silent()), "x").TryLock(ctx)
	is(t, "TryLock of another user", err, rlock.ErrNotAcquired)
	l := granted(t, second, patience, "the second")
	waits(t, third, "the third")
	unlock(t, l)
	unlock(t, granted(t, third, patience, "the third"))
	nothingLeft(t, s)
}

// After such an Unlock the first waiter has the lock with its next heartbeat, and then the one behind it,
// be the first waiter's user the same one or not.
func TestUnlockByAUserWhoMayNotTellTheNextCostsAHeartbeat(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"mute", "any"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			ctx := within(t, time.Minute)
			cfg := rlock.Config{QueueLease: 20 * time.Second, PollFloor: 300 * time.Millisecond}
			mute, b := dialMute(t, s, silent()), dial(t, s, cfg)
			if who == "mute" {
				b = dialMute(t, s, cfg)
			}
			m := fairlock.New(dial(t, s, cfg), "x")
			first := lock(t, ctx, fairlock.New(mute, "x"))
			second := goQueued(t, ctx, fairlock.New(b, "x"), 1)
			third := goQueued(t, ctx, m, 2)
			began := time.Now()
			unlock(t, first)
			l := granted(t, second, patience, "the second")
			if d := l.at.Sub(began); d > cfg.PollFloor*11/10+s.Slack() {
				t.Errorf("it took %v, want the poll floor of %v at most", d, cfg.PollFloor)
			}
			waits(t, third, "the third")
			unlock(t, l)
			unlock(t, granted(t, third, patience, "the third"))
			nothingLeft(t, s)
		})
	}
}
