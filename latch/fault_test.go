package latch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/rlock"
)

// A lost message, and a latch that is deleted, cost a waiter one poll floor.
func TestPollFloor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{PollFloor: 300 * time.Millisecond, Trace: trace})
		l := latch.New(ses, "x")
		sets(t, ctx, l, 2, true)
		c := await(ctx, l)
		locktest.Get(t, waiting, patience, "the waiter")
		must(t, s.Do(t, "DEL", "x").Error())
		opens(t, c)
		must(t, ses.Close())
	})
}

// A Redis that was restarted without its data has no latch, and what it has not is open: as documented.
func TestALatchThatRedisHasForgottenIsOpen(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{Trace: trace})
		l := latch.New(ses, "x")
		sets(t, ctx, l, 2, true)
		c := await(ctx, l)
		locktest.Get(t, waiting, patience, "the waiter")
		s.Kill()
		waits(t, c)
		s.Restart(t)
		opens(t, c)
		must(t, l.CountDown(ctx))
		counts(t, ctx, l, 0)
	})
}

// The answer to a command is lost, or the command itself: it counts once all the same (R8).
func TestFaultLostCommandsCountOnce(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, p := locktest.DialProxy(t, s, slow())
		for i, name := range []string{"reply", "request"} {
			lose := p.DropReply
			if i == 1 {
				lose = p.DropRequest
			}
			l := latch.New(ses, name)
			p.Reset()
			lose(locktest.Runs(src["try_set"]))
			sets(t, ctx, l, 3, true)
			lose(locktest.Runs(src["count_down"]))
			must(t, l.CountDown(ctx))
			counts(t, ctx, l, 2)
			lose(locktest.Runs(src["count"]))
			counts(t, ctx, l, 2)
			must(t, l.CountDown(ctx))
			lose(locktest.Runs(src["count_down"]))
			must(t, l.CountDown(ctx))
			lose(locktest.Runs(src["await"]))
			must(t, l.Await(ctx))
			if n := locktest.Sent(p, locktest.Runs(src["count_down"])); i == 0 && n != 5 {
				t.Errorf("count_down was sent %d times, want 5", n)
			}
		}
	})
}

// A waiter of a session whose connections are cut learns that the latch has opened meanwhile.
func TestFaultReconnect(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		cut, p := locktest.DialProxy(t, s, cfg)
		l := latch.New(dial(t, s, slow()), "x")
		sets(t, ctx, l, 1, true)
		c := await(ctx, latch.New(cut, "x"))
		locktest.Get(t, waiting, patience, "the waiter")
		p.Refuse(true)
		p.Cut()
		must(t, l.CountDown(ctx))
		waits(t, c)
		p.Refuse(false)
		opens(t, c)
	})
}

// Many count down, many wait, some give up: all others pass, and only when all have counted.
func TestRandom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 2*time.Minute)
		sessions := []*rlock.Session{dial(t, s, slow()), dial(t, s, slow()), dial(t, s, slow())}
		rounds := int(locktest.Cycles(t, s, 200)) / 4
		for round := range rounds {
			const n = 12
			sets(t, ctx, latch.New(sessions[0], "x"), n, true)
			var counted, passed atomic.Int32
			var wg sync.WaitGroup
			for i := range 3 * n {
				l := latch.New(sessions[(i+round)%3], "x")
				wg.Go(func() {
					switch i % 3 {
					case 0:
						counted.Add(1)
						if err := l.CountDown(ctx); err != nil {
							t.Error(err)
						}
					case 1:
						if err := l.Await(ctx); err != nil || counted.Load() != n {
							t.Errorf("Await: %v, when %d of %d had counted", err, counted.Load(), n)
						}
						passed.Add(1)
					default:
						if err := l.Await(ctx, rlock.Wait(time.Duration(i)*time.Microsecond)); err != nil && !errors.Is(err, rlock.ErrNotAcquired) {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if passed.Load() != n {
				t.Fatalf("%d of %d passed", passed.Load(), n)
			}
		}
	})
}

// An attempt that does not wait has Redis's answer, although callers of its session wait who have not
// noticed yet that the latch is open.
func TestAwaitWithoutWaitingBesideWaiters(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		l := latch.New(dial(t, s, cfg), "x")
		sets(t, ctx, l, 1, true)
		c := await(ctx, l)
		locktest.Get(t, waiting, 20*time.Second, "a caller to wait")
		is(t, "a closed latch", l.Await(ctx, rlock.Wait(0)), rlock.ErrNotAcquired)
		must(t, s.Do(t, "DEL", "x").Error()) // without a message
		must(t, l.Await(ctx, rlock.Wait(0)))
		must(t, l.Await(ctx, rlock.Retry(rlock.Limit(rlock.Linear(time.Millisecond), 3))))
		must(t, s.Do(t, "PUBLISH", l.Channel(), "0").Error())
		opens(t, c)
	})
}

// A caller that gives up while nothing is known of its question leaves nothing behind that is to be released: Close has
// nothing to wait for where Redis does not answer, and no release to report that was not confirmed.
func TestAQuestionWithoutAnAnswerLeavesNothingToRelease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		var log locktest.Journal
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour, Logger: log.Logger()})
		l := latch.New(ses, "x")
		sets(t, ctx, l, 1, true)
		seen, release := p.HoldReply(locktest.Runs(src["await"]))
		defer release()
		c := await(ctx, l)
		locktest.Get(t, seen, patience, "the answer")
		p.BlackHole(true)
		cancel()
		is(t, "Await", locktest.Get(t, c, patience, "the caller to give up"), rlock.ErrNotAcquired, context.Canceled)
		must(t, ses.Close())
		if n := log.Count("never confirmed"); n > 0 {
			t.Errorf("the log speaks of a release: %s", log.Last("never confirmed"))
		}
	})
}
