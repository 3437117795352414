package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// A crowd is a session whose callers pass permits on without end: one always waits.
type crowd struct {
	inside atomic.Int32
	most   atomic.Int32 // of inside, since it was reset
	served atomic.Int64
	wg     sync.WaitGroup
	stop   context.CancelFunc
}

func gather(t *testing.T, m *semaphore.Semaphore, callers int, work time.Duration) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{stop: cancel}
	for range callers {
		c.wg.Go(func() {
			for ctx.Err() == nil {
				err := m.Do(ctx, 1, func(context.Context) error {
					n := c.inside.Add(1)
					for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
					}
					time.Sleep(work)
					c.inside.Add(-1)
					c.served.Add(1)
					return nil
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	return c
}

func (c *crowd) leave() {
	c.stop()
	c.wg.Wait()
}

// A limit that was lowered takes effect although the callers of a session pass their permits on
// in memory without end: the time slice ends.
func TestLoweredLimitTakesEffectWhilePermitsArePassedOn(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		var handedOver atomic.Int64
		cfg := slow()
		cfg.Trace = &rlock.Trace{HandedOver: func(locktrace.HandedOver) { handedOver.Add(1) }}
		c := gather(t, semaphore.New(dial(t, s, cfg), "x", 3), 12, 2*time.Millisecond)
		defer c.leave()
		defer func() {
			t.Logf("at most %d were inside, %d were served, %d permits were passed on", c.most.Load(), c.served.Load(), handedOver.Load())
		}()
		redistest.Eventually(t, 30*time.Second, "three inside, and permits to be passed on", func() bool {
			return c.most.Load() == 3 && handedOver.Load() > 10
		})
		must(t, semaphore.New(dial(t, s, slow()), "x", 3).SetLimit(within(t, 10*time.Second), 1))
		redistest.Eventually(t, 10*time.Second, "the permits beyond the limit to be released", func() bool { return taken(t, s, "x") <= 1 })
		redistest.Eventually(t, 10*time.Second, "those inside to leave", func() bool { return c.inside.Load() <= 1 })
		c.most.Store(0)
		before := c.served.Load()
		redistest.Eventually(t, 30*time.Second, "more of them", func() bool { return c.served.Load() > before+100 })
		if most := c.most.Load(); most != 1 {
			t.Errorf("%d were inside at once, and the limit is 1", most)
		}
	})
}

// A process that polls, and that no PUBLISH counts, gets permits although the callers of a
// session pass them on without end.
func TestPollersGetTheirTurnWhilePermitsArePassedOn(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := gather(t, semaphore.New(dial(t, s, slow()), "x", 2), 12, 2*time.Millisecond)
		defer c.leave()
		redistest.Eventually(t, 10*time.Second, "two inside", func() bool { return c.most.Load() == 2 })
		poller := semaphore.New(dial(t, s, slow()), "x", 2)
		redistest.Eventually(t, 20*time.Second, "the poller's turn", func() bool {
			_, p, err := poller.TryAcquire(within(t, 10*time.Second), 1)
			if err == nil {
				must(t, p.Release())
			} else if !errors.Is(err, rlock.ErrNotAcquired) {
				t.Fatal(err)
			}
			return err == nil
		})
	})
}

// When a time slice is over the permits are left to others for a moment: the message of the
// session's own release does not end that. Here commands take no time, so nobody gets in by
// luck.
func TestPermitsAreLeftToPollersAfterASlice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true)
		defer server.Close()
		ours, theirs := locktest.DialBubble(t, server, rlock.Config{}), locktest.DialBubble(t, server, rlock.Config{})
		defer ours.Close()
		defer theirs.Close()
		c := gather(t, semaphore.New(ours, "x", 1), 4, time.Millisecond)
		defer c.leave()
		poller := semaphore.New(theirs, "x", 1)
		pause := 100 * time.Microsecond
		if testing.Short() {
			pause *= 4
		}
		turns := 0
		for began := time.Now(); time.Since(began) < time.Second; time.Sleep(pause) {
			if _, p, err := poller.TryAcquire(context.Background(), 1); err == nil {
				turns++
				must(t, p.Release())
			}
		}
		// A slice is 100 ms, since no release counts the poller.
		if turns < 8 || turns > 100 {
			t.Errorf("the poller had %d turns in a second", turns)
		}
	})
}

// A waiter for three permits in front of one for one: the permit that comes free is not passed
// over its head, in memory or by Redis.
func TestPermitsArePassedInTheOrderOfArrival(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, 3, slow())
		_, foreign, err := semaphore.New(dial(t, s, slow()), "x", 3).Acquire(st.ctx, 2)
		must(t, err)
		_, p := st.take(1)
		ctx, cancel := context.WithCancel(st.ctx)
		defer cancel()
		large := st.queue(ctx, 3)
		small := st.queue(st.ctx, 1)
		asked := locktest.Sent(st.p, locktest.Runs(src["acquire"]))
		must(t, p.Release())
		redistest.Eventually(t, 10*time.Second, "the large one to ask", func() bool { return locktest.Sent(st.p, locktest.Runs(src["acquire"])) > asked })
		waits(t, "the small one", small)
		must(t, foreign.Release())
		g := st.in(large)
		waits(t, "the small one", small)
		must(t, g.p.Release())
		must(t, st.in(small).p.Release())
	})
}
