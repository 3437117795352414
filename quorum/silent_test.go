package quorum_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/quorum"
	"relock/rlock"
)

// A round that has no majority waits for a Redis that falls silent no longer than for an answer, when it
// takes a vote back, also where all of the others are needed for a majority: of an even number.
func TestVotesOfASilentRedisAreTakenBackBehindARefusal(t *testing.T) {
	all := cluster(t, 2, real)
	ctx := within(t, time.Minute)
	_, h, err := rlock.New(locktest.Dial(t, all[1], slow()), "x").Lock(ctx)
	must(t, err)
	cfg := slow()
	cfg.ReleaseTimeout = 10 * time.Minute
	gives, silent := locktest.DialProxy(t, all[0], cfg)
	refuses, late := locktest.DialProxy(t, all[1], cfg)
	acquires := locktest.Runs(quorum.AcquireSource)
	taken, resume := silent.HoldRequest(func(cmd []string) bool { return slices.Contains(cmd, "x") && !acquires(cmd) })
	defer resume()
	seen, answer := late.HoldReply(acquires)
	c := make(chan error, 1)
	go func() {
		_, _, err := quorum.New([]*rlock.Session{gives, refuses}, "x").TryLock(ctx)
		c <- err
	}()
	locktest.Get(t, seen, 20*time.Second, "the refusal")
	redistest.Eventually(t, 20*time.Second, "the vote", func() bool { return slices.Contains(all[0].Keys(t), "x") })
	answer()
	locktest.Get(t, taken, 20*time.Second, "the vote to be taken back")
	silent.BlackHole(true)
	if err := locktest.Get(t, c, 20*time.Second, "TryLock to return"); err == nil {
		t.Error("TryLock has a majority")
	}
	must(t, h.Unlock())
}

// A vote that comes as its time ends is given back behind the round, which a Redis that falls silent then does not
// hold up.
func TestAVoteAtTheEndOfItsTimeIsGivenBackBehindTheRound(t *testing.T) {
	all := cluster(t, 1, real)
	cfg := slow()
	cfg.ReleaseTimeout = 10 * time.Minute
	var silent *faulttest.Proxy
	cfg.Trace = &rlock.Trace{AcquireEnd: func(ctx context.Context, e locktrace.AcquireEnd) {
		if e.Err == nil {
			silent.BlackHole(true)
			<-ctx.Done() // the time for the vote
		}
	}}
	ses, proxy := locktest.DialProxy(t, all[0], cfg)
	silent = proxy
	c := make(chan error, 1)
	go func() {
		_, _, err := quorum.New([]*rlock.Session{ses}, "x").TryLock(within(t, time.Minute))
		c <- err
	}()
	is(t, "TryLock", locktest.Get(t, c, 20*time.Second, "TryLock to return"), rlock.ErrUnavailable)
}
