package quorum_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/quorum"
	"relock/rlock"
)

func TestMain(m *testing.M) {
	redistest.Main(m, "lua", "../rlock/lua", "../internal/redis/lua")
}

// Short names for what the tests of all kinds of lock share.
var (
	within = locktest.Within
	must   = locktest.Must
	is     = locktest.Is
	ends   = locktest.Ends
)

// lifeKey is where a node keeps what it knows of its life.
const lifeKey = "relock_quorum_life"

// slow is a Config in which nothing happens by the clock within a test.
func slow() rlock.Config { return rlock.Config{Lease: time.Hour, PollFloor: time.Hour} }

// cluster makes n fresh servers that give votes at once.
func cluster(t *testing.T, n int, start func(t *testing.T) *redistest.Server) (all []*redistest.Server) {
	for range n {
		s := start(t)
		ripen(t, s)
		all = append(all, s)
	}
	return all
}

func mini(t *testing.T) *redistest.Server { return redistest.Mini(t) }
func real(t *testing.T) *redistest.Server { return redistest.Real(t) }

// each runs fn on five servers, of either kind.
func each(t *testing.T, fn func(t *testing.T, all []*redistest.Server)) {
	began := time.Now()
	t.Run("miniredis", func(t *testing.T) { fn(t, cluster(t, 5, mini)) })
	slow := time.Since(began) >= redistest.Quick
	t.Run("redis", func(t *testing.T) {
		if slow {
			redistest.SkipShort(t)
		}
		fn(t, cluster(t, 5, real))
	})
}

var runID = regexp.MustCompile(`run_id:(\w+)`)

// ripen makes a server one that has run for long.
func ripen(t *testing.T, s *redistest.Server) {
	t.Helper()
	run := ""
	if !s.IsMini() {
		info, err := s.Do(t, "INFO", "server").ToString()
		must(t, err)
		run = runID.FindStringSubmatch(info)[1]
	}
	must(t, s.Do(t, "SET", lifeKey, run+" 1").Error())
}

// dial makes a session for each server. How they close is not looked at: a server may be dead.
func dial(t *testing.T, all []*redistest.Server, cfg rlock.Config) (sessions []*rlock.Session) {
	t.Helper()
	if cfg.ReleaseTimeout == 0 {
		cfg.ReleaseTimeout = time.Second
	}
	for _, s := range all {
		opt := s.Option()
		opt.Dialer.Timeout = time.Second
		ses, err := rlock.Dial(context.Background(), opt, cfg)
		must(t, err)
		sessions = append(sessions, ses)
	}
	t.Cleanup(func() { closeAll(sessions) })
	return sessions
}

// closeAll closes sessions, all at the same time.
func closeAll(sessions []*rlock.Session) {
	done := make(chan struct{})
	for _, s := range sessions {
		go func() {
			_ = s.Close()
			done <- struct{}{}
		}()
	}
	for range sessions {
		<-done
	}
}

// lock takes a lock.
func lock(t *testing.T, ctx context.Context, m *quorum.Mutex, opts ...rlock.LockOption) (context.Context, *quorum.Hold) {
	t.Helper()
	section, h, err := m.Lock(ctx, opts...)
	must(t, err)
	return section, h
}

// lockAll takes a lock with so many votes at once. On a busy machine some may come too late to
// count; then it is released and taken again.
func lockAll(t *testing.T, ctx context.Context, m *quorum.Mutex, n int) (section context.Context, h *quorum.Hold) {
	t.Helper()
	redistest.Eventually(t, 20*time.Second, "all votes in one round", func() bool {
		section, h = lock(t, ctx, m)
		for began := time.Now(); h.Votes() != n; time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Second { // votes that are later than 500 ms are given back
				_ = h.Unlock() // it may be lost
				return false
			}
		}
		return true
	})
	return section, h
}

// free checks that a lock can be had, after a round or two of callers that take votes from each
// other.
func free(t *testing.T, ctx context.Context, m *quorum.Mutex) {
	t.Helper()
	_, h := lock(t, ctx, m, rlock.Wait(10*time.Second))
	must(t, h.Unlock())
}

// warm has a lock taken and released by all servers. It has all votes before it ends: one that it
// gives up would be given back while the next Lock asks.
func warm(t *testing.T, ctx context.Context, m *quorum.Mutex, all []*redistest.Server) {
	t.Helper()
	_, h := lock(t, ctx, m)
	votes(t, h, len(all))
	must(t, h.Unlock())
	for _, s := range all {
		redistest.Eventually(t, 10*time.Second, "the votes to be given back", func() bool { return len(s.Keys(t)) == 1 })
	}
}

// taken checks that another owner holds a lock. On a busy machine answers may be too late to count.
func taken(t *testing.T, ctx context.Context, m *quorum.Mutex) {
	t.Helper()
	var err error
	redistest.Eventually(t, 10*time.Second, "answers in time", func() bool {
		_, _, err = m.TryLock(ctx)
		return !errors.Is(err, rlock.ErrUnavailable)
	})
	is(t, "TryLock", err, rlock.ErrNotAcquired)
}

// votes waits until a hold has so many.
func votes(t *testing.T, h *quorum.Hold, n int) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "the votes to be counted", func() bool { return h.Votes() == n })
}
