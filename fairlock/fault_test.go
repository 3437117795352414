package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// count returns what Redis counts for an owner.
func count(t testing.TB, m *fairlock.Mutex, owner string) int {
	t.Helper()
	st, err := m.State(context.Background())
	must(t, err)
	return st.Owners[owner]
}

// tooBusy reports whether a TryLock that began then has given up since the machine took more than its
// second. By a made-up clock none does, and by a real one none does earlier.
func tooBusy(err error, began time.Time) bool {
	return errors.Is(err, rlock.ErrUnavailable) && !redistest.MadeUpClock() && time.Since(began) >= time.Second
}

// The reply to an acquire is lost and the script sent again: one hold is counted, of a free
// lock and of one that is held already (R8). A TryLock that gives up meanwhile leaves nothing.
func TestAcquireReplyDropped(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		ses, proxy := dialProxy(t, s, short(s))
		m := fairlock.New(ses, "x", rlock.Fenced())
		for _, ctx := range []context.Context{rlock.WithOwner(ctx, "me"), ctx} {
			for _, take := range []func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error){m.TryLock, m.Lock} {
				proxy.DropReply(runs("acquire"))
				began := time.Now()
				section, h, err := take(ctx)
				if tooBusy(err, began) {
					nothingLeft(t, s, "redisson_lock_token:{x}")
					continue
				}
				must(t, err)
				if n := count(t, m, h.Owner()); n != 1 {
					t.Errorf("%d holds counted, want 1", n)
				}
				proxy.DropReply(runs("acquire"))
				began = time.Now()
				_, nested, err := take(section)
				if !tooBusy(err, began) {
					must(t, err)
					if n := count(t, m, h.Owner()); n != 2 || nested.Token() != h.Token() {
						t.Errorf("%d holds counted, want 2; tokens %d and %d", n, h.Token(), nested.Token())
					}
					must(t, nested.Unlock())
				}
				must(t, h.Unlock())
				nothingLeft(t, s, "redisson_lock_token:{x}")
			}
		}
	})
}

// The reply to an acquire that queued is lost: one place, and it is the old one (R8).
func TestQueueReplyDropped(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		cfg := rlock.Config{Lease: time.Minute, QueueLease: time.Minute, PollFloor: time.Second} // no place is lost on a busy machine
		a := dial(t, s, cfg)
		b, proxy := dialProxy(t, s, cfg)
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		proxy.DropReply(runs("acquire"))
		next := goQueued(t, rlock.WithOwner(ctx, "me"), fairlock.New(b, "x"), 1)
		last := goQueued(t, ctx, m, 2)
		redistest.Eventually(t, patience, "the acquire to be sent again", func() bool {

			return locktest.Sent(proxy, runs("acquire")) >= 2
		})
		queued(t, m, 2)
		unlock(t, first)
		l := granted(t, next, patience, "the one whose reply was lost")
		waits(t, last, "the last")
		unlock(t, l)
		unlock(t, granted(t, last, patience, "the last"))
		nothingLeft(t, s)
	})
}

// The reply to a release is lost: Unlock reports success, a second one is ErrNotHeld, and
// neither frees the lock of the waiter that the first run has let in (R9).
func TestReleaseReplyDropped(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, proxy := dialProxy(t, s, rlock.Config{})
		b := dial(t, s, rlock.Config{})
		m := fairlock.New(b, "x")
		section, h, err := fairlock.New(a, "x").Lock(ctx)
		must(t, err)
		_, nested, err := fairlock.New(a, "x").Lock(section)
		must(t, err)
		next := goQueued(t, ctx, m, 1)
		last := goQueued(t, ctx, m, 2)

		proxy.DropReply(runs("release"))
		must(t, nested.Unlock())
		if n := count(t, m, h.Owner()); n != 1 {
			t.Fatalf("after the nested Unlock %d holds are counted, want 1", n)
		}
		proxy.DropReply(runs("release"))
		must(t, h.Unlock())
		if n := locktest.Sent(proxy, runs("release")); n != 4 {
			t.Errorf("%d releases sent, want each twice", n)
		}
		l := granted(t, next, patience, "the next")
		is(t, "a second Unlock", h.Unlock(), rlock.ErrNotHeld)
		if n := count(t, m, l.hold.Owner()); n != 1 || l.ctx.Err() != nil {
			t.Errorf("the successor has %d holds in Redis, and its section has ended with %v", n, context.Cause(l.ctx))
		}
		waits(t, last, "the last")
		unlock(t, l)
		unlock(t, granted(t, last, patience, "the last"))
		nothingLeft(t, s)
	})
}

// A context that ends while the acquire is in flight: soon nothing is held and nobody
// queues, and a waiter behind is not held up (R7).
func TestContextEndsInFlight(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"request", "reply"} {
		for _, free := range []bool{true, false} {
			name := what + map[bool]string{true: " of a free lock", false: " of a held lock"}[free]
			t.Run(name, func(t *testing.T) {
				each(t, func(t *testing.T, s *redistest.Server) {
					ctx := within(t, patience)
					a := dial(t, s, silent())
					b, proxy := dialProxy(t, s, silent())
					m := fairlock.New(a, "x")
					var first locked
					if !free {
						first = lock(t, ctx, m)
					}
					hold := proxy.HoldRequest
					if what == "reply" {
						hold = proxy.HoldReply
					}
					seen, release := hold(runs("acquire"))
					own, cancel := context.WithCancel(ctx)
					defer cancel()
					c := goLock(own, fairlock.New(b, "x"))
					locktest.Get(t, seen, patience, "the acquire is on its way")
					cancel()
					l := locktest.Get(t, c, patience, "Lock returns")
					is(t, "Lock", l.err, rlock.ErrNotAcquired, context.Canceled)
					release()
					if free {
						began := time.Now()
						nothingLeft(t, s)
						if d := time.Since(began); d > time.Second+s.Slack() {
							t.Errorf("something was held for %v", d)
						}
						return
					}
					redistest.Eventually(t, patience, "the place to be given up", func() bool {
						return locktest.Sent(proxy, runs("release")) == 1
					})
					queued(t, m, 0)
					unlock(t, first)
					nothingLeft(t, s)
				})
			})
		}
	}
}

// A context that was done before sends nothing.
func TestContextDoneBefore(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	ses, proxy := dialProxy(t, s, rlock.Config{})
	m := fairlock.New(ses, "x")
	proxy.Reset()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := m.Lock(ctx)
	_, _, err2 := m.TryLock(ctx)
	_, err3 := m.Waiters(ctx)
	for _, err := range []error{err, err2, err3} {
		is(t, "ctx done before", err, context.Canceled)
	}
	if n := proxy.Count(); n != 0 {
		t.Errorf("%d commands were sent: %q", n, proxy.Log())
	}
}

// A grant whose message comes late is not believed longer than Redis keeps it: the claim is
// over, another owner is in, and the late waiter queues again and is served.
func TestGrantMessageComesTooLate(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		cfg := short(s)
		a := dial(t, s, cfg)
		b, proxy := dialProxy(t, s, cfg)
		m := fairlock.New(a, "x")
		first := lock(t, ctx, m)
		late := goQueued(t, ctx, fairlock.New(b, "x"), 1)
		next := goQueued(t, ctx, m, 2)
		proxy.BlackHole(true)
		unlock(t, first)
		l := granted(t, next, patience, "the next")
		proxy.BlackHole(false) // the message arrives now
		queued(t, m, 1)
		waits(t, late, "the late one")
		if l.ctx.Err() != nil {
			t.Fatalf("the holder's section ended: %v", context.Cause(l.ctx))
		}
		unlock(t, l)
		unlock(t, granted(t, late, patience, "the late one"))
		nothingLeft(t, s)
	})
}

// The network is cut under a holder that was let in by a message: its section ends before the
// next waiter can be let in (R1).
func TestCutOffHolderEndsBeforeTheNextIsIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		cfg := short(s)
		cfg.Lease, cfg.QueueLease = s.Slowed(2*time.Second), s.Slowed(2*time.Second)
		a := dial(t, s, cfg)
		locktest.Together(t, []bool{true, false}, func(confirmed bool) {
			b, proxy := dialProxy(t, s, cfg)
			x := fmt.Sprint("confirmed: ", confirmed)
			m := fairlock.New(a, x)
			first := lock(t, ctx, m)
			holder := goQueued(t, ctx, fairlock.New(b, x), 1)
			if !confirmed { // the network goes silent between the message and the renewal
				seen, release := proxy.HoldRequest(renews(t))
				unlock(t, first)
				locktest.Get(t, seen, patience, "the hold to be confirmed")
				proxy.BlackHole(true)
				release()
			} else {
				unlock(t, first)
			}
			l := granted(t, holder, patience, "the holder")
			if confirmed {
				redistest.Eventually(t, patience, "the hold to be confirmed", func() bool {
					if l.ctx.Err() != nil {
						t.Fatalf("it ended %v after it began: %v", time.Since(l.at), context.Cause(l.ctx))
					}
					return l.hold.Remaining() > fairlock.QueueLease(a)/4
				})
				proxy.BlackHole(true)
			}
			next := granted(t, goLock(ctx, m), patience, "the next")
			if redistest.MadeUpClock() && l.ctx.Err() == nil {
				t.Error("two are inside")
			}
			ended(t, l.ctx, rlock.ErrLost)
			unlock(t, next)
			proxy.BlackHole(false)
			is(t, "Unlock", l.hold.Unlock(), rlock.ErrLost)
		})
		nothingLeft(t, s)
	})
}
