package election_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/election"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A Redis that falls silent when a candidate has the lock, and has not published its value, keeps the
// candidate neither behind the end of its ctx nor for long behind that of Wait, however long a release may
// take. The lock is released when Redis answers again.
func TestCampaignEndsWhileRedisIsSilent(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		cfg := slow()
		cfg.ReleaseTimeout = 10 * time.Minute
		for what, opts := range map[string][]rlock.LockOption{
			"ctx ends": nil, "Wait is over": {rlock.Wait(time.Second)}, "no waiting": {rlock.Wait(0)},
		} {
			ctx, cancel := context.WithCancel(within(t, time.Hour))
			ses, p := locktest.DialProxy(t, s, cfg)
			seen, release := p.HoldRequest(locktest.Runs(src["publish"]))
			c := make(chan error, 1)
			go func() {
				_, _, err := election.New(ses, what).Campaign(ctx, "a", opts...)
				c <- err
			}()
			locktest.Get(t, seen, patience, "the value to be sent")
			p.BlackHole(true)
			release()
			want := rlock.ErrUnavailable
			if opts == nil {
				cancel()
				want = context.Canceled
			}
			is(t, what, locktest.Get(t, c, patience, what+": Campaign to return"), want)
			cancel()
			p.BlackHole(false)
			p.Cut()
			next := within(t, time.Minute)
			_, l, err := election.New(ses, what).Campaign(next, "b")
			must(t, err)
			must(t, l.Resign())
		}
	})
}

// A Redis that refuses the value is not silent: a candidate that may not publish has given the lock back when Campaign
// returns, and the next one need not wait.
func TestCampaignThatMayNotPublishHasReleased(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	rules := "on >secret resetkeys ~x ~redisson_* ~relock_line* ~relock_probe* ~relock_session* &* +@all"
	must(t, s.Do(t, append([]string{"ACL", "SETUSER", "few"}, strings.Fields(rules)...)...).Error())
	opt := s.Option()
	opt.Username, opt.Password = "few", "secret"
	ses, err := rlock.Dial(within(t, time.Minute), opt, slow())
	must(t, err)
	defer ses.Close()
	for range 10 {
		_, _, err = election.New(ses, "x").Campaign(within(t, time.Minute), "a")
		is(t, "Campaign", err, rlock.ErrUnavailable)
		if slices.Contains(s.Keys(t), "x") {
			t.Fatal("the lock is still held when Campaign has returned")
		}
	}
}
