package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// each runs a test on both kinds of server, beside other fault tests: they mostly wait.
var each = redistest.EachParallel

type fault func(p *faulttest.Proxy, match func([]string) bool)

var (
	dropReply   fault = (*faulttest.Proxy).DropReply
	dropRequest fault = (*faulttest.Proxy).DropRequest
)

// The answer to an acquisition or a release is lost, or the command itself: each counts
// once all the same (R8, R9).
func TestFaultLostCommandsOfASemaphoreCountOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		for i, lose := range []fault{dropReply, dropRequest} {
			for _, try := range []bool{false, true} {
				ses, p := locktest.DialProxy(t, s, rlock.Config{})
				name := fmt.Sprint("x", i, try)
				m := semaphore.New(ses, name, 9)
				_, other, err := m.Acquire(ctx, 1)
				must(t, err)
				lose(p, locktest.Runs(src["acquire"]))
				get := m.Acquire
				if try {
					get = m.TryAcquire
				}
				p.Reset()
				_, held, err := get(ctx, 8) // all that is left
				if try && i == 1 && err != nil {
					// Nothing was sent as far as the client can tell: TryAcquire may say so.
					_, held, err = get(ctx, 8)
				}
				must(t, err)
				if sent := locktest.Sent(p, locktest.Runs(src["acquire"])); i == 0 && sent != 2 {
					t.Errorf("%s: the acquire script was sent %d times", name, sent)
				}
				if free, n := value(t, s, name), taken(t, s, name); free != "0" || n != 9 {
					t.Errorf("%s: %s free, %d taken", name, free, n)
				}
				lose(p, locktest.Runs(src["release"]))
				must(t, held.Release())
				if free, n := value(t, s, name), taken(t, s, name); free != "8" || n != 1 {
					t.Errorf("%s, released: %s free, %d taken", name, free, n)
				}
				is(t, "a second Release", held.Release(), rlock.ErrNotHeld)
				must(t, other.Release())
				if free := value(t, s, name); free != "9" {
					t.Errorf("%s, at the end: %s free", name, free)
				}
			}
		}
	})
}

// The same for a counter, which has nothing but the ids of its requests.
func TestFaultLostCommandsOfACounterCountOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		for i, lose := range []fault{dropReply, dropRequest} {
			ses, p := locktest.DialProxy(t, s, rlock.Config{})
			c := semaphore.NewCounter(ses, fmt.Sprint("x", i))
			lose(p, locktest.Runs(src["try_set"]))
			if ok, err := c.TrySet(ctx, 10); !ok || err != nil {
				t.Errorf("TrySet: %v, %v", ok, err)
			}
			lose(p, locktest.Runs(src["take"]))
			must(t, c.Acquire(ctx, 4))
			available(t, ctx, c, 6)
			if i == 0 {
				lose(p, locktest.Runs(src["take"]))
			}
			switch err := c.TryAcquire(ctx, 1); {
			case !s.IsMini() && errors.Is(err, rlock.ErrUnavailable):
				// Its second was over before a busy machine had connected again: what it took it gives back.
				redistest.Eventually(t, 20*time.Second, "the permit to be given back", func() bool {
					n, err := c.Available(ctx)
					return err == nil && n == 6
				})
				must(t, c.Acquire(ctx, 1))
			default:
				must(t, err)
			}
			available(t, ctx, c, 5)
			lose(p, locktest.Runs(src["add"]))
			must(t, c.Release(ctx, 4))
			available(t, ctx, c, 9)
			lose(p, locktest.Runs(src["add"]))
			must(t, c.Add(ctx, -2))
			available(t, ctx, c, 7)
			lose(p, locktest.Runs(src["drain"]))
			drain(t, ctx, c, 7)
			available(t, ctx, c, 0)
		}
	})
}

// A ctx that ends while the acquisition is under way, its answer or itself held up: within
// a second nothing is held any more (R7).
func TestFaultCancelledInFlightLeavesNothing(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, late := range []bool{false, true} {
			ses, p := locktest.DialProxy(t, s, rlock.Config{})
			m, c := semaphore.New(ses, "x", 3), semaphore.NewCounter(ses, "c")
			must(t, s.Do(t, "SET", "c", "3").Error())
			must(t, s.Do(t, "SET", "x", "3").Error())
			for what, call := range map[string]func(context.Context) error{
				"acquire": func(ctx context.Context) error { _, _, err := m.Acquire(ctx, 2); return err },
				"take":    func(ctx context.Context) error { return c.Acquire(ctx, 2) },
			} {
				hold := p.HoldReply
				if late {
					hold = p.HoldRequest
				}
				seen, release := hold(locktest.Runs(src[what]))
				ctx, cancel := context.WithCancel(within(t, 30*time.Second))
				done := start(func() error { return call(ctx) })
				locktest.Get(t, seen, 10*time.Second, what)
				if ran := value(t, s, "x") == "1" || value(t, s, "c") == "1"; ran == late {
					t.Errorf("%s: it has run: %v", what, ran)
				}
				cancel()
				is(t, what, locktest.Get(t, done, 10*time.Second, what+" to return"), rlock.ErrNotAcquired, context.Canceled)
				release()
				redistest.Eventually(t, time.Second+s.Slack(), what+" to be taken back", func() bool {
					undo := locktest.Sent(p, locktest.Runs(src["release"], src["untake"]))
					return undo >= 1 && value(t, s, "x") == "3" && value(t, s, "c") == "3" && taken(t, s, "x") == 0
				})
				p.Reset()
			}
		}
	})
}

// A counter's request that was taken back takes nothing when it is delivered once more.
func TestFaultDuplicateOfAnUndoneRequestTakesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		must(t, s.Do(t, "SET", "c", "3").Error())
		for range 2 {
			eval(t, s, "take", req, once("2")...)
			eval(t, s, "untake", undoing, back...)
		}
		if got := value(t, s, "c"); got != "3" {
			t.Errorf("the counter has %s", got)
		}
	})
}

// An attempt that was lost on its way may still arrive, even after a later one was refused:
// a caller that leaves says so in Redis, so that the attempt takes nothing.
func TestFaultLostAttemptIsUndoneAlthoughALaterOneWasRefused(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: trace})
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		p.DropRequest(locktest.Runs(src["take"]))
		done := start(func() error { return semaphore.NewCounter(ses, "c").Acquire(ctx, 2) })
		locktest.Get(t, waiting, 20*time.Second, "a refusal")
		cancel()
		is(t, "Acquire", locktest.Get(t, done, 10*time.Second, "Acquire to return"), rlock.ErrNotAcquired, context.Canceled)
		redistest.Eventually(t, 5*time.Second, "word to be left", func() bool {
			return locktest.Sent(p, locktest.Runs(src["untake"])) == 1 && len(s.Keys(t)) == 1
		})
	})
}

// Close releases what is held, ends sections, and wakes waiters (R12).
func TestFaultClose(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses := dial(t, s, cfg)
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 3)
		section, p, err := m.Acquire(ctx, 2)
		must(t, err)
		var waiters []<-chan got
		for n := range 5 {
			waiters = append(waiters, acquire(ctx, m, n%2+2))
			if n == 0 {
				locktest.Get(t, waiting, 10*time.Second, "the first")
			}
		}
		must(t, ses.Close())
		for _, w := range waiters {
			is(t, "a waiter", locktest.Get(t, w, 10*time.Second, "a waiter's end").err, rlock.ErrClosed)
		}
		locktest.Ends(t, section, s.Slack(), rlock.ErrClosed)
		is(t, "Release", p.Release(), rlock.ErrClosed)
		if got := locktest.Describe(t, s); got != "x=3" {
			t.Errorf("Redis has %s", got)
		}
		_, _, err = m.Acquire(ctx, 1)
		is(t, "Acquire", err, rlock.ErrClosed)
		_, _, err = m.TryAcquire(ctx, 1)
		is(t, "TryAcquire", err, rlock.ErrClosed)
		is(t, "SetLimit", m.SetLimit(ctx, 1), rlock.ErrClosed)
		is(t, "Available", second(m.Available(ctx)), rlock.ErrClosed)
	})
}

// When every message is lost a waiter has what was released within the poll floor (R13).
func TestFaultLostMessagesCostNoMoreThanThePollFloor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const floor = 500 * time.Millisecond
		trace, waiting := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: floor, Trace: trace})
		holder := dial(t, s, slow())
		ctx := within(t, 20*time.Second)
		_, held, err := semaphore.New(holder, "x", 2).Acquire(ctx, 2)
		must(t, err)
		p.DropMessages(true)
		waiter := acquire(ctx, semaphore.New(ses, "x", 2), 2)
		counted := start(func() error { return semaphore.NewCounter(ses, "c").Acquire(ctx, 2) })
		for range 2 {
			locktest.Get(t, waiting, 10*time.Second, "the waiters")
		}
		redistest.Eventually(t, 10*time.Second, "them to listen", func() bool { return len(s.Channels(t)) == 4 })
		must(t, held.Release())
		must(t, semaphore.NewCounter(holder, "c").Release(ctx, 2))
		g := locktest.Get(t, waiter, floor+s.Slack(), "the permits")
		must(t, g.err)
		must(t, locktest.Get(t, counted, floor+s.Slack(), "the counter"))
		must(t, g.p.Release())
	})
}

// A release that got no answer is made up for in the background, and gives back what was
// held once.
func TestFaultReleaseWithoutAnAnswerIsMadeUpFor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 200 * time.Millisecond})
		ctx := within(t, 30*time.Second)
		m := semaphore.New(ses, "x", 3)
		_, held, err := m.Acquire(ctx, 2)
		must(t, err)
		p.Refuse(true)
		if err := held.Release(); err == nil {
			t.Error("a release without a connection succeeded")
		}
		p.Refuse(false)
		redistest.Eventually(t, 10*time.Second, "the release", func() bool { return value(t, s, "x") == "3" })
		is(t, "a second one", held.Release(), rlock.ErrNotHeld)
	})
}

// The server's clock alone decides: one that is years off, or jumps, against the clients'
// makes no difference but that of its own (R21).
func TestServerClockDecides(t *testing.T) {
	for _, off := range []time.Duration{-50 * 365 * 24 * time.Hour, -time.Hour, time.Hour, 20 * 365 * 24 * time.Hour} {
		m := miniredis.NewMiniRedis()
		must(t, m.Start())
		began := time.Now().Add(off).Truncate(time.Millisecond).Add(700 * time.Microsecond)
		m.SetTime(began)
		ses, err := rlock.Dial(context.Background(), (&redistest.Server{Addr: m.Addr(), Mini: m}).Option(), rlock.Config{PollFloor: 20 * time.Millisecond})
		must(t, err)
		ctx := within(t, 20*time.Second)
		x := semaphore.New(ses, "x", 2)
		_, p, err := x.Acquire(ctx, 2, rlock.Lease(time.Hour))
		must(t, err)
		m.SetTime(began.Add(time.Hour - 500*time.Microsecond))
		_, _, err = x.TryAcquire(ctx, 1)
		is(t, "before an hour is over there", err, rlock.ErrNotAcquired)
		available(t, ctx, x, 0)
		m.SetTime(began.Add(time.Hour + 2*time.Millisecond))
		_, next, err := x.TryAcquire(ctx, 1)
		must(t, err)
		is(t, "Release of what has expired there", p.Release(), rlock.ErrLost)
		must(t, next.Release())
		available(t, ctx, x, 2)
		must(t, ses.Close())
		m.Close()
	}
}
