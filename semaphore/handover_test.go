package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// A stage is a semaphore, and a session behind a proxy whose callers hand permits over.
type stage struct {
	t   *testing.T
	p   *faulttest.Proxy
	ses *rlock.Session
	m   *semaphore.Semaphore
	ctx context.Context

	waiting <-chan struct{}
	refused chan struct{}
	settled bool // the session asks no more until it hears of something
}

func newStage(t *testing.T, s *redistest.Server, limit int, cfg rlock.Config) *stage {
	st := &stage{t: t, ctx: within(t, 30*time.Second)}
	cfg.Trace, st.waiting = locktest.Waiting()
	st.refused = make(chan struct{}, 1000)
	cfg.Trace.Attempt = func(e locktrace.Attempt) {
		if e.Err == nil && !e.Granted {
			st.refused <- struct{}{}
		}
	}
	st.ses, st.p = locktest.DialProxy(t, s, cfg)
	st.m = semaphore.New(st.ses, "x", limit)
	return st
}

// take acquires permits that are free; their time slice does not end by itself.
func (st *stage) take(n int, opts ...rlock.LockOption) (context.Context, *semaphore.Permits) {
	st.t.Helper()
	section, p, err := st.m.Acquire(st.ctx, n, opts...)
	must(st.t, err)
	semaphore.SliceFor(st.ses, "x", time.Hour)
	return section, p
}

// queue has one more caller wait, and returns when it does not ask Redis any more.
func (st *stage) queue(ctx context.Context, n int, opts ...rlock.LockOption) <-chan got {
	st.t.Helper()
	c := acquire(ctx, st.m, n, opts...)
	locktest.Get(st.t, st.waiting, 10*time.Second, "one more waiter")
	if !st.settled { // the first of the line asks again when it listens
		locktest.Get(st.t, st.refused, 10*time.Second, "a refusal")
		locktest.Get(st.t, st.refused, 10*time.Second, "a second one")
		st.settled = true
	}
	return c
}

// in returns what a waiter got, which must be permits.
func (st *stage) in(c <-chan got) got {
	st.t.Helper()
	g := locktest.Get(st.t, c, 10*time.Second, "a waiter's permits")
	must(st.t, g.err)
	return g
}

// Permits pass in memory to the caller in front if it wants exactly as many, and if neither has
// a lease of its own: Redis hears nothing of it, but that the caller waits no more. Else they go through Redis.
func TestPermitsPassInMemoryToTheFront(t *testing.T) {
	forAnHour := []rlock.LockOption{rlock.Lease(time.Hour)}
	for _, c := range []struct {
		name         string
		limit        int // HandOverLimit
		n, wants     int
		held, waiter []rlock.LockOption
		passes       bool
	}{
		{name: "one", n: 1, wants: 1, passes: true},
		{name: "three", n: 3, wants: 3, passes: true},
		{name: "more than wanted", n: 3, wants: 2},
		{name: "the holder has a lease", n: 3, wants: 3, held: forAnHour},
		{name: "the waiter has a lease", n: 3, wants: 3, waiter: forAnHour},
		{name: "hand-overs are off", limit: -1, n: 3, wants: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				cfg := slow()
				cfg.HandOverLimit = c.limit
				st := newStage(t, s, c.n, cfg)
				section, p := st.take(c.n, c.held...)
				waiter := st.queue(st.ctx, c.wants, c.waiter...)
				st.p.Reset()
				must(t, p.Release())
				g := st.in(waiter)
				// Behind the hand-over the waiter's entry leaves the line.
				sent, left := st.p.Count("EVALSHA", "EVAL"), locktest.Sent(st.p, locktest.Runs(src["release"]))
				if c.passes && (sent > left || left > 1) || !c.passes && left == 0 || c.passes != (g.p.Owner() == p.Owner()) {
					t.Errorf("%d scripts were sent, %d of them to release; owner %s after %s", sent, left, g.p.Owner(), p.Owner())
				}
				if g.p.N() != c.wants || g.section.Err() != nil || !errors.Is(context.Cause(section), rlock.ErrReleased) {
					t.Errorf("%d permits; the section: %v, the one before: %v", g.p.N(), g.section.Err(), context.Cause(section))
				}
				is(t, "released again", p.Release(), rlock.ErrNotHeld)
				if got := taken(t, s, "x"); got != int64(c.wants) {
					t.Errorf("%d permits are taken, want %d", got, c.wants)
				}
				must(t, g.p.Release())
				// If the waiter's entry leaves the line behind this release, the permit is given to it, and comes back.
				redistest.Eventually(t, 10*time.Second, "no permit to be taken", func() bool { return taken(t, s, "x") == 0 })
			})
		})
	}
}

// After as many hand-overs in a row as HandOverLimit says the permits go through Redis: then the
// next caller has an owner that was not seen before.
func TestPermitsPassNoMoreOftenThanTheLimit(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const limit, waiters = 2, 7
		cfg := rlock.Config{HandOverLimit: limit, Lease: time.Hour}
		st := newStage(t, s, 1, cfg)
		_, p := st.take(1)
		var queue []<-chan got
		for range waiters {
			queue = append(queue, st.queue(st.ctx, 1))
		}
		row, passed := 0, 0
		for _, waiter := range queue {
			before := p.Owner()
			must(t, p.Release())
			p = st.in(waiter).p
			semaphore.SliceFor(st.ses, "x", time.Hour)
			if p.Owner() != before {
				row = 0
				continue
			}
			passed++
			if row++; row > limit {
				t.Errorf("hand-over %d in a row", row)
			}
		}
		if passed < limit {
			t.Errorf("%d hand-overs, want %d at least", passed, limit)
		}
		must(t, p.Release())
	})
}

// Permits that pass on are renewed for the one that has them now, also when nobody wanted that
// for the one before: its context had ended.
func TestPassedPermitsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true)
		defer server.Close()
		ses := locktest.DialBubble(t, server, rlock.Config{Lease: 30 * time.Second})
		defer ses.Close()
		m := semaphore.New(ses, "x", 1)
		ctx, cancel := context.WithCancel(context.Background())
		_, p, err := m.Acquire(ctx, 1)
		must(t, err)
		semaphore.SliceFor(ses, "x", time.Hour)
		waiter := acquire(context.Background(), m, 1)
		cancel()
		time.Sleep(12 * time.Second) // it should have been renewed after 10
		must(t, p.Release())
		g := <-waiter
		must(t, g.err)
		if g.p.Owner() != p.Owner() {
			t.Fatal("the permit went through Redis")
		}
		time.Sleep(time.Minute)
		must(t, g.section.Err())
		must(t, g.p.Release())
	})
}

// The caller behind the one that got permits in memory hears of those that others release.
func TestFrontAfterAHandOverHearsOfReleases(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, 2, slow())
		_, foreign, err := semaphore.New(dial(t, s, slow()), "x", 2).Acquire(st.ctx, 1)
		must(t, err)
		_, p := st.take(1)
		first := st.queue(st.ctx, 1)
		second := st.queue(st.ctx, 1)
		must(t, p.Release())
		g := st.in(first)
		waits(t, "the second", second)
		must(t, foreign.Release())
		must(t, st.in(second).p.Release())
		must(t, g.p.Release())
	})
}

// Permits that are handed over take their caller's entry out of the line. The next caller of the session, who wants another
// number and so cannot have that entry, stands there with its own at once: its turn would come too late behind those of
// other sessions.
func TestTheNextOfAnotherSizeStandsInTheLineBehindAHandOver(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		defer reportLine(t, s, "x")
		st := newStage(t, s, 4, slow())
		_, p := st.take(4)
		same, other := st.queue(st.ctx, 4), st.queue(st.ctx, 1)
		must(t, p.Release())
		next := st.in(same)
		redistest.Eventually(t, 10*time.Second, "the entry of one permit", func() bool {
			entries := inLine(t, s, "x")
			return len(entries) == 1 && entries[0][1:4] == "001"
		})
		must(t, next.p.Release())
		must(t, st.in(other).p.Release())
	})
}
