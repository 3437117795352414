package quorum_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/quorum"
	"relock/rlock"
)

// lively is a Config for tests in which leases end. A vote is trusted for 200 ms less than it lasts,
// and has as long to come. A release that nothing bounds takes much longer than what tests allow.
func lively() rlock.Config {
	return rlock.Config{Lease: 4 * time.Second, ReleaseTimeout: 10 * time.Second}
}

// With two of five servers dead the lock works, and a section that they die in goes on. With
// three dead none can be had, which is no refusal, and an open section ends before the first of
// its votes can be another owner's.
func TestDeadServers(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	all := cluster(t, 5, real)
	ctx := within(t, time.Minute)
	lease, stalls := lively().Lease, locktest.WatchStalls(t)
	mine, theirs := quorum.New(dial(t, all, lively()), "x"), quorum.New(dial(t, all, lively()), "x")
	section, h := lockAll(t, ctx, mine, 5)
	all[0].Kill()
	all[1].Kill()
	votes(t, h, 3) // when their leases are over
	if section.Err() != nil {
		t.Fatalf("the section has ended: %v", context.Cause(section))
	}
	taken(t, ctx, theirs)
	began := time.Now()
	must(t, h.Unlock())
	_, h = lock(t, ctx, theirs)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("from owner to owner with two dead servers: %v", took)
	}
	must(t, h.Unlock())

	section, h = lockAll(t, ctx, mine, 3)
	stalls.Reset()
	killed := time.Now()
	all[2].Kill()
	ends(t, section, 10*time.Second, rlock.ErrLost)
	if took := time.Since(killed); took > lease && stalls.Longest() < lease/100 {
		t.Errorf("the section has outlived its majority: it ended after %v", took)
	}
	if h.Remaining() != 0 {
		t.Errorf("a lost lock can be trusted for %v", h.Remaining())
	}
	is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	_, _, err := theirs.TryLock(ctx)
	if err == nil || errors.Is(err, rlock.ErrNotAcquired) || !strings.Contains(err.Error(), "node 2") {
		t.Errorf("TryLock without a majority: %v", err)
	}
	_, _, err = theirs.Lock(ctx, rlock.Wait(50*time.Millisecond))
	is(t, "Lock without a majority", err, rlock.ErrNotAcquired)
}

// A server that is slow does not hold up the others: not a Lock, not an Unlock. When it answers
// within its time its vote is added; later the vote is given back.
func TestSlowServer(t *testing.T) {
	redistest.SkipShort(t)
	all := cluster(t, 5, real)
	ctx := within(t, 30*time.Second)
	sessions := dial(t, all[1:], slow())
	through, p := locktest.DialProxy(t, all[0], slow()) // whose releases have 5 s
	m := quorum.New(append(sessions, through), "x")
	warm(t, ctx, m, all)
	owners := func() int { return len(all[0].Keys(t)) - 1 }

	acquires := locktest.Runs(quorum.AcquireSource)
	redistest.Eventually(t, 20*time.Second, "an answer that is slow and in time to count", func() bool {
		seen, release := p.HoldReply(acquires)
		_, h := lock(t, ctx, m)
		locktest.Get(t, seen, 10*time.Second, "the slow answer")
		votes(t, h, 4)
		release()
		redistest.Eventually(t, 10*time.Second, "its vote to be added, or given back", func() bool { return h.Votes() == 5 || owners() == 0 })
		added := h.Votes() == 5 // else the machine was busy, and the answer later than 500 ms
		must(t, h.Unlock())
		return added
	})

	seen, release := p.HoldReply(acquires)
	_, h := lock(t, ctx, m)
	locktest.Get(t, seen, 10*time.Second, "the slow answer")
	votes(t, h, 4)
	must(t, h.Unlock()) // which ends the attempt
	release()
	redistest.Eventually(t, 10*time.Second, "the late vote to be given back", func() bool { return owners() == 0 })

	_, h = lock(t, ctx, m)
	votes(t, h, 5)
	p.BlackHole(true)
	for range 2 { // the silent server has a vote, and has none
		began := time.Now()
		must(t, h.Unlock())
		_, h = lock(t, ctx, m)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("Unlock and Lock took %v beside a silent server", took)
		}
	}
	must(t, h.Unlock())
	for _, s := range all[1:3] {
		s.Pause()
		defer s.Resume()
	}
	_, _, err := m.TryLock(ctx)
	if err == nil || errors.Is(err, rlock.ErrNotAcquired) || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("TryLock with three silent servers: %v", err)
	}
}

// A server that is restarted empty gives no vote for a lease: else it would help a second owner
// to a majority while the first one holds the other votes. The first one is told.
func TestRestartedEmpty(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	all := cluster(t, 3, real)
	ctx := within(t, time.Minute)
	cfg := lively()
	mine, theirs := quorum.New(dial(t, all, cfg), "x"), quorum.New(dial(t, all, cfg), "x")
	all[2].Kill()
	section, h := lock(t, ctx, mine)
	votes(t, h, 2)
	all[2].Restart(t)
	restarted := time.Now()
	all[1].Restart(t)
	_, _, err := theirs.TryLock(ctx)
	if err == nil {
		t.Fatal("two servers that have forgotten everything have made an owner")
	}
	ends(t, section, 10*time.Second, rlock.ErrLost)
	_, h2, err := theirs.Lock(ctx)
	must(t, err)
	if took := time.Since(restarted); took < cfg.Lease {
		t.Errorf("the next owner was let in %v after the restart", took)
	}
	is(t, "Unlock of the first owner", h.Unlock(), rlock.ErrLost)
	must(t, h2.Unlock())
}

// A restart with the data counts as well: what was written last may be missing.
func TestRestartedWithData(t *testing.T) {
	all := cluster(t, 1, func(t *testing.T) *redistest.Server {
		return redistest.Real(t, "--appendonly", "yes", "--appendfsync", "always")
	})
	ctx := within(t, 20*time.Second)
	free(t, ctx, quorum.New(dial(t, all, slow()), "x"))
	all[0].Restart(t)
	redistest.Eventually(t, 10*time.Second, "the server to come back with its data", func() bool {
		n, err := all[0].Do(t, "EXISTS", lifeKey).AsInt64()
		return err == nil && n == 1
	})
	_, _, err := quorum.New(dial(t, all, slow()), "x").TryLock(ctx)
	if is(t, "TryLock", err, rlock.ErrNotAcquired); !strings.Contains(err.Error(), "restarted") {
		t.Errorf("TryLock: %v", err)
	}
}

// The votes are renewed for as long as the caller's context lives. Then the lock frees itself
// within a lease, and not before. A fixed lease is not renewed. Nothing of it takes time here:
// the servers and the sessions live by the clock of the test.
func TestLeases(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !s.IsMini() {
			t.Skip("one clock for all")
		}
		ctx := within(t, time.Hour)
		all := []*redistest.Server{s}
		ripen(t, s)
		mine, theirs := dial(t, all, rlock.Config{}), dial(t, all, rlock.Config{})
		defer closeAll(mine)
		defer closeAll(theirs)
		a, b := quorum.New(mine, "x"), quorum.New(theirs, "x")
		own, cancel := context.WithCancel(ctx)
		section, h := lock(t, own, a)
		time.Sleep(10 * time.Minute)
		if section.Err() != nil || h.Remaining() < 15*time.Second {
			t.Fatalf("after ten minutes: %v, %v", context.Cause(section), h.Remaining())
		}
		short, stop := context.WithTimeout(ctx, 30*time.Millisecond)
		_, _, err := b.Lock(short)
		stop()
		is(t, "the end of ctx", err, rlock.ErrNotAcquired, context.DeadlineExceeded)
		cancel()
		began := time.Now()
		taken(t, ctx, b)
		_, h = lock(t, ctx, b)
		if took := time.Since(began); took < 15*time.Second || took > 35*time.Second {
			t.Errorf("it was free after %v", took)
		}
		must(t, h.Unlock())
		began = time.Now()
		section, h = lock(t, ctx, b, rlock.Lease(20*time.Second))
		ends(t, section, time.Minute, rlock.ErrLost)
		if took := time.Since(began); took < 18*time.Second || took > 20*time.Second {
			t.Errorf("a fixed lease of 20 s ended after %v", took)
		}
		is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

// A new deployment grants its first lock one lease after it was first asked.
func TestFirstUse(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		all := []*redistest.Server{s}
		for !s.IsMini() && len(all) < 3 {
			all = append(all, redistest.Real(t))
		}
		ctx, lease := within(t, time.Minute), s.Slowed(2500*time.Millisecond) // a round has 500 ms of 10 s
		sessions := dial(t, all, rlock.Config{Lease: lease})
		defer closeAll(sessions)
		m := quorum.New(sessions, "x")
		began := time.Now()
		_, _, err := m.TryLock(ctx)
		if is(t, "TryLock", err, rlock.ErrNotAcquired); !strings.Contains(err.Error(), "is new") {
			t.Errorf("TryLock: %v", err)
		}
		_, h := lock(t, ctx, m)
		if took := time.Since(began); took < lease || took > lease+rlock.DefaultPollFloor+s.Slack() {
			t.Errorf("the first lock was granted after %v", took)
		}
		must(t, h.Unlock())
	})
}
