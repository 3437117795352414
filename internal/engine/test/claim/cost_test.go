package claim_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
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
		publishWithoutRelease(t, s, proxies)
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

// publishWithoutRelease publishes five times as a release does, and checks that the first session of the line alone
// looks. The proxies, in the order of the line, have an empty log then.
func publishWithoutRelease(t *testing.T, s *redistest.Server, proxies []*faulttest.Proxy) {
	t.Helper()
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
}
