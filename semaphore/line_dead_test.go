package semaphore_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/semaphore"
)

// Forty sessions that died stand in front of one that waits, and are looked at sixteen in one script: what comes free is
// that one's all the same, and not when it looks by itself, in an hour (scenario 39).
func TestManyDeadSessionsInFrontDoNotKeepPermitsIdle(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"release", "release by id", "set limit", "a counter's release"} {
		t.Run(how, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				clock, err := s.Do(t, "TIME").AsIntSlice()
				must(t, err)
				now := clock[0]*1000 - 1
				for i := range 40 {
					standDead(t, s, "C0000100", fmt.Sprintf("dead%d", i), now*1000+int64(i), now-60000)
				}
				giver := dial(t, s, slow())
				m, c := semaphore.New(giver, "x", 1), semaphore.NewCounter(giver, "x")
				live := dial(t, s, slow())
				var done <-chan error
				if how == "a counter's release" {
					done = start(func() error { return semaphore.NewCounter(live, "x").Acquire(ctx, 1) })
					awaitInLine(t, s, "x", 41)
					must(t, c.Release(ctx, 1))
				} else {
					_, held, err := m.TryAcquire(ctx, 1)
					must(t, err)
					done = start(func() error {
						_, p, err := semaphore.New(live, "x", 1).Acquire(ctx, 1)
						if err == nil {
							err = p.Release()
						}
						return err
					})
					awaitInLine(t, s, "x", 41)
					switch how {
					case "release":
						must(t, held.Release())
					case "release by id":
						must(t, m.ReleaseByID(ctx, held.IDs()...))
					default:
						must(t, m.SetLimit(ctx, 2))
					}
				}
				must(t, locktest.Get(t, done, 10*time.Second, "the one behind the dead"))
			})
		})
	}
}

// standDead puts the entry of a session that has died in the line of x: how it begins, its position, and until when it is
// taken for alive, in ms.
func standDead(t testing.TB, s *redistest.Server, begins, session string, position, alive int64) {
	t.Helper()
	entry := fmt.Sprintf("%s%07d%05d%s:1", begins, 5000, len(session), session)
	must(t, s.Do(t, "ZADD", "relock_line1:{x}", fmt.Sprint(position), entry, fmt.Sprint(int64(5e15)-alive), "s"+session).Error())
	must(t, s.Do(t, "PEXPIRE", "relock_line1:{x}", "600000").Error())
}

// justDied puts one there that has just died: it is taken for alive, and its connection is closed.
func justDied(t testing.TB, s *redistest.Server) {
	t.Helper()
	clock, err := s.Do(t, "TIME").AsIntSlice()
	must(t, err)
	standDead(t, s, "P0011250", "dead", clock[0]*1000000+clock[1], clock[0]*1000+5000)
	pass(t, 2*time.Millisecond) // others come behind it
}

// A Delete calls the first of the line to make the semaphore anew. If that has just died, another one is called.
func TestDeleteBehindADeadSessionWakesAnother(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		m := semaphore.New(dial(t, s, slow()), "x", 1)
		_, _, err := m.Acquire(ctx, 1)
		must(t, err)
		justDied(t, s)
		waiter := acquire(ctx, semaphore.New(dial(t, s, slow()), "x", 1), 1)
		awaitInLine(t, s, "x", 2)
		must(t, m.Delete(ctx))
		must(t, locktest.Get(t, waiter, 10*time.Second, "the one behind the dead").err)
	})
}

// One script lets in 16. If the next in the line has just died, what is still free is not left to that: another one asks, or
// the one whose attempt let them in asks again.
func TestADeadSeventeenthDoesNotKeepPermitsIdle(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"release", "one that comes"} {
		t.Run(how, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				const limit, atOnce = 20, 16
				ctx := within(t, time.Minute)
				_, held, err := semaphore.New(dial(t, s, slow()), "x", limit).Acquire(ctx, limit)
				must(t, err)
				var waiters []<-chan got
				come := func() { waiters = append(waiters, acquire(ctx, semaphore.New(dial(t, s, slow()), "x", limit), 1)) }
				for i := range atOnce {
					come()
					awaitInLine(t, s, "x", i+1)
					pass(t, time.Millisecond)
				}
				awaitListener(t, s, "x")
				justDied(t, s)
				if how == "release" {
					come()
					awaitInLine(t, s, "x", atOnce+2)
					must(t, held.Release())
				} else {
					must(t, s.Do(t, "INCRBY", "x", fmt.Sprint(limit)).Error()) // as a release of Redisson's that nobody hears
					come()
				}
				for i, w := range waiters {
					must(t, locktest.Get(t, w, 10*time.Second, fmt.Sprint("waiter ", i)).err)
				}
			})
		})
	}
}
