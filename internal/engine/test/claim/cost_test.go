package claim_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
	"relock/locktrace"
	"relock/rlock"
)

// An uncontended cycle is two scripts, re-entry two more, and nothing else is sent: no
// subscription, no SCRIPT LOAD, not even for the very first use.
func TestUncontendedCostsTwoCommands(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		m := rlock.New(ses, "x")
		for _, fenced := range []bool{false, true} {
			if fenced {
				m = rlock.New(ses, "x", rlock.Fenced())
			}
			p.Reset()
			_, h, err := m.Lock(ctx)
			must(t, err)
			must(t, h.Unlock())
			if log := p.Log(); len(log) != 2 || p.Count("EVALSHA") != 2 {
				t.Errorf("one cycle sent %q", log)
			}
			p.Reset()
			for range 10 {
				section, h, err := m.Lock(ctx)
				must(t, err)
				_, nested, err := m.Lock(section)
				must(t, err)
				must(t, nested.Unlock())
				must(t, h.Unlock())
			}
			if log := p.Log(); len(log) != 40 || p.Count("EVALSHA") != 40 {
				t.Errorf("10 nested cycles sent %d commands: %q", len(log), log)
			}
		}
		if got := s.Channels(t); len(got) != 1 || got[0] != "relock_session:"+ses.ID() {
			t.Errorf("channels %q, want the session's own alone", got)
		}
	})
}

// However many goroutines of a session wait, Redis sees one waiter, and what one
// acquisition costs does not depend on their number.
func TestWaitersOfASessionAreOneContender(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, n := range []int{1, 64, 1000} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				other := dial(t, s, rlock.Config{})
				ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour})
				ctx := within(t, 5*time.Minute)
				name := redistest.Name(t)
				_, foreign, err := rlock.New(other, name).Lock(ctx)
				must(t, err)
				p.Reset()
				m := rlock.New(ses, name)
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						_, h, err := m.Lock(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						if err := h.Unlock(); err != nil {
							t.Error(err)
						}
					})
				}
				redistest.Eventually(t, 20*time.Second, "everybody to wait", func() bool {
					return locktest.WaitersOf(ses, name) == n && p.Count("EVALSHA") == 2
				})
				if got := p.Count(); got != 3 {
					t.Errorf("%d waiters sent %d commands, want try, subscribe, try: %q", n, got, p.Log())
				}
				p.Reset()
				must(t, foreign.Unlock())
				wg.Wait()
				if got := p.Count("EVALSHA"); got > 2*n {
					t.Errorf("%d acquisitions sent %d scripts, want %d", n, got, 2*n)
				}
			})
		}
	})
}

// Goroutines of one session that take turns need no subscription, and two commands each;
// next to none where the lock may pass from one to the next in memory.
func TestContentionWithinASessionNeedsNoSubscription(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, limit := range []int{-1, 0} {
			var handed atomic.Int64
			ses, p := locktest.DialProxy(t, s, rlock.Config{HandOverLimit: limit, Trace: &rlock.Trace{
				HandedOver: func(locktrace.HandedOver) { handed.Add(1) },
			}})
			ctx := within(t, 5*time.Minute)
			m := rlock.New(ses, "x")
			const workers, rounds = 50, 40
			total := workers * rounds
			if limit < 0 {
				total /= 10
			}
			p.Reset()
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for range total / workers {
						if err := m.Do(ctx, func(context.Context) error { return nil }); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			redistest.Eventually(t, 10*time.Second, "nothing under way", func() bool {
				_, _, _, _, active := locktest.Books(ses)
				return active == 0
			})
			got := p.Count()
			if n := p.Count("SUBSCRIBE", "SSUBSCRIBE"); n != 0 {
				t.Errorf("%d subscriptions", n)
			}
			switch {
			case limit < 0 && (got != 2*total || handed.Load() != 0):
				t.Errorf("%d acquisitions sent %d commands, want 2 each; %d hand-overs", total, got, handed.Load())
			case limit == 0 && (got*5 > total || handed.Load() < int64(total/2)):
				t.Errorf("%d acquisitions sent %d commands, want less than 0.2 each; %d hand-overs", total, got, handed.Load())
			}
			t.Logf("limit %d: %d acquisitions, %d commands, %d hand-overs", limit, total, got, handed.Load())
		}
	})
}

// One release causes one attempt or grant, however many sessions wait (R15): an acquisition costs two
// commands, that which enters the line and the release, among 4 sessions and among 64. A few more are
// those of the first of a line, which listens and asks once more, and the renewals of granted locks.
func TestReleaseCausesOneAttemptOrGrant(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var each []float64
		for _, sessions := range []int{4, 64} {
			const rounds = 20
			name := fmt.Sprint("x", sessions)
			ctx := within(t, 5*time.Minute)
			holder := dial(t, s, rlock.Config{})
			_, h, err := rlock.New(holder, name).Lock(ctx)
			must(t, err)
			var proxies []*faulttest.Proxy
			var all []*rlock.Session
			var wg sync.WaitGroup
			for range sessions {
				ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour})
				proxies, all = append(proxies, p), append(all, ses)
				wg.Go(func() {
					for range rounds {
						if err := rlock.New(ses, name).Do(ctx, func(context.Context) error { return nil }); err != nil {
							t.Error(err)
							return
						}
					}
				})
				locktest.AwaitInLine(t, s, name, ses)
			}
			must(t, h.Unlock())
			wg.Wait()
			locktest.NothingLeft(t, s, all...)
			total := 0
			for _, p := range proxies {
				total += p.Count()
			}
			each = append(each, float64(total)/float64(sessions*rounds))
		}
		t.Logf("%.2f commands for each acquisition of 4 sessions, %.2f of 64", each[0], each[1])
		if each[0] > 4 || each[1] > 4 || each[1] > each[0]+1.5 {
			t.Errorf("%.2f commands for each acquisition of 4 sessions, %.2f of 64; want 2 and a little", each[0], each[1])
		}
	})
}

// A publication without a release costs one look of the first one of the line, and the others nothing (R15).
// The release that comes then lets one session in by a grant, which costs no attempt, and all the callers of
// that go in before their release gives the lock to the next session.
func TestOnlyTheFirstHearsOfAPublication(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 5*time.Minute)
		_, h, err := rlock.New(holder, "x").Lock(ctx)
		must(t, err)

		const sessions, callers = 4, 8
		var proxies []*faulttest.Proxy
		var all []*rlock.Session
		var wg sync.WaitGroup
		for i := range sessions {
			ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour})
			proxies, all = append(proxies, p), append(all, ses)
			for range callers {
				wg.Go(func() {
					if err := rlock.New(ses, "x").Do(ctx, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			redistest.Eventually(t, 20*time.Second, "the session to wait", func() bool {
				asked := 1
				if i == 0 { // it listens as well, and has asked once more then
					asked = 2
				}
				return locktest.WaitersOf(ses, "x") == callers && p.Count("EVALSHA") == asked
			})
		}
		for _, p := range proxies {
			p.Reset()
		}
		for round := 1; round <= 5; round++ {
			must(t, s.Do(t, "PUBLISH", "redisson_lock__channel:{x}", "0").Error())
			redistest.Eventually(t, 10*time.Second, "the first session to look", func() bool { return proxies[0].Count("EVALSHA") >= round })
		}
		for i, p := range proxies {
			want := 0
			if i == 0 {
				want = 5
			}
			if got := p.Count(); got != want {
				t.Errorf("5 publications made session %d send %d commands, want %d: %q", i, got, want, p.Log())
			}
			p.Reset()
		}
		must(t, h.Unlock())
		wg.Wait()
		locktest.NothingLeft(t, s, all...)
		acquires := 0
		for _, p := range proxies {
			acquires += locktest.CallsSent(t, p, "acquire")
		}
		// A slice that ends on a busy machine before all the callers are through enters the line anew in its
		// release; only the last session, for which no other waits, may have to ask.
		if acquires > callers {
			t.Errorf("%d attempts for %d sessions that the lock was granted to", acquires, sessions)
		}
		t.Logf("%d attempts", acquires)
	})
}

// An idle waiter costs less than one command a second (R15).
func TestIdleWaiterIsQuiet(t *testing.T) {
	redistest.EachBubble(t, idleWaiterIsQuiet)
}

func idleWaiterIsQuiet(t *testing.T, s *redistest.Server) {
	holder := dial(t, s, rlock.Config{})
	ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: 250 * time.Millisecond})
	ctx := within(t, 20*time.Second)
	_, h, err := rlock.New(holder, "x").Lock(ctx)
	must(t, err)
	p.Reset()
	_, _, err = rlock.New(ses, "x").Lock(ctx, rlock.Wait(2500*time.Millisecond))
	if !errors.Is(err, rlock.ErrNotAcquired) {
		t.Error(err)
	}
	// Ten floors, each up to a tenth shorter, after try, subscribe, try.
	if got := p.Count(); got > 3+12 {
		t.Errorf("waiting for ten poll floors sent %d commands: %q", got, p.Log())
	}
	must(t, h.Unlock())
}

// No goroutine and no timer for a held lock: ten thousand add none, and they are
// renewed by few scripts.
func TestHeldLocksNeedNoGoroutine(t *testing.T) {
	redistest.SkipShort(t)
	s := redistest.Real(t)
	lease := 6 * time.Second
	if redistest.Race { // with which a busy machine takes longer than that for all of them
		lease = 30 * time.Second
	}
	before := runtime.NumGoroutine() // tests that wait for their turn have one each
	ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, ReleaseTimeout: time.Minute})
	ctx := within(t, 5*time.Minute)
	const n = 10_000
	base := runtime.NumGoroutine()
	if base-before > 40 {
		t.Errorf("%d goroutines for an idle session and its proxy", base-before)
	}
	holds := make([]*rlock.Hold, n)
	for i := range holds {
		_, h, err := rlock.New(ses, fmt.Sprint("held-", i)).Lock(ctx)
		must(t, err)
		holds[i] = h
	}
	redistest.Eventually(t, 5*time.Second, "no goroutine more than before", func() bool {
		return runtime.NumGoroutine() <= base+2 // a renewal may be under way
	})
	p.Reset()
	renewals := func() (scripts, locks int) {
		for _, cmd := range p.Log() {
			if f := strings.SplitN(cmd, " ", 4); f[0] == "EVALSHA" {
				var k int
				fmt.Sscan(f[2], &k)
				scripts, locks = scripts+1, locks+k
			}
		}
		return
	}
	redistest.Eventually(t, lease+20*time.Second, "every lock to be renewed once", func() bool {
		_, locks := renewals()
		return locks >= n
	})
	scripts, locks := renewals()
	if scripts > locks/100 {
		t.Errorf("%d scripts renewed %d locks, want at least 100 with each", scripts, locks)
	}
	t.Logf("%d scripts renewed %d locks", scripts, locks)
	for _, h := range holds {
		must(t, h.Unlock())
	}
	locktest.NothingLeft(t, s, ses)
}

// Ten thousand waiters on ten thousand names share one subscriber connection, and no
// channel is left afterwards (R14).
func TestManyWaitersShareOneConnection(t *testing.T) {
	redistest.SkipShort(t)
	s := redistest.Real(t)
	// Ten thousand releases at once are confirmed when a busy machine gets to it.
	holder := dial(t, s, rlock.Config{ReleaseTimeout: 2 * time.Minute})
	ses := dial(t, s, rlock.Config{PollFloor: time.Minute, ReleaseTimeout: 2 * time.Minute})
	ctx, stalls := within(t, 120*time.Second), locktest.WatchStalls(t)
	const n = 10_000
	name := func(i int) string { return fmt.Sprint("n", i) }
	holds := make([]*rlock.Hold, n)
	for i := range holds {
		_, h, err := rlock.New(holder, name(i)).Lock(ctx)
		must(t, err)
		holds[i] = h
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, h, err := rlock.New(ses, name(i)).Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			// What a message gives is lost if the machine stands still for as long as Redis keeps it.
			if err := h.Unlock(); err != nil && !stalls.Excuse(err, waiting.GrantLease) {
				t.Error(err)
			}
		})
	}
	redistest.Eventually(t, 60*time.Second, "everybody to listen", func() bool { return len(s.Channels(t)) == n+2 })
	clients, err := s.Do(t, "CLIENT", "LIST", "TYPE", "pubsub").ToString()
	must(t, err)
	if got := strings.Count(clients, "\n"); got != 2 {
		t.Errorf("%d subscriber connections for two sessions", got)
	}
	for _, h := range holds {
		must(t, h.Unlock())
	}
	wg.Wait()
	locktest.NothingLeft(t, s, holder, ses)
}
