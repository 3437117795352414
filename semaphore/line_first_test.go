package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// javaHolds has Redisson take permits that are free, with a lease, or for ever; javaReleases has it give one back.
func javaHolds(t *testing.T, s *redistest.Server, name string, lease time.Duration, ids ...string) {
	t.Helper()
	expiry := inf
	if lease > 0 {
		expiry = fmt.Sprint(time.Now().Add(lease).UnixMilli())
	}
	for _, id := range ids {
		must(t, s.Do(t, "INCRBY", name, "-1").Error())
		must(t, s.Do(t, "ZADD", zset(name), expiry, id).Error())
	}
}

func javaReleases(t *testing.T, s *redistest.Server, name, id string) {
	t.Helper()
	must(t, s.Do(t, "ZREM", zset(name), id).Error())
	free, err := s.Do(t, "INCRBY", name, "1").AsInt64()
	must(t, err)
	must(t, s.Do(t, "PUBLISH", channel(name), fmt.Sprint(free)).Error())
}

// Redisson's clients know no line. What they release, or leave to its expiry, is for the session that has come to be
// the first of the line meanwhile, however that came about. Its own look is an hour away (scenario 32).
func TestWhoComesToBeTheFirstHearsOfForeignReleases(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"let in by a release", "let in by a foreign release", "it leaves", "it leaves, and the permits expire", "it wants too much"} {
		t.Run(how, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				first, second, other := newLiner(t, s), newLiner(t, s), semaphore.New(dial(t, s, slow()), "x", 3)
				_, ours, err := other.Acquire(ctx, 1)
				must(t, err)
				lease := time.Duration(0)
				if how == "it leaves, and the permits expire" {
					lease = 3 * time.Second
				}
				javaHolds(t, s, "x", lease, "java1", "java2")
				firstCtx, leave := context.WithCancel(ctx)
				n := 1
				if how == "it wants too much" {
					n = 3
				}
				a := acquire(firstCtx, semaphore.New(first.ses, "x", 3), n)
				awaitInLine(t, s, "x", 1)
				pass(t, time.Millisecond)
				b := acquire(ctx, semaphore.New(second.ses, "x", 3), 1)
				awaitInLine(t, s, "x", 2)
				first.isRefused(2) // it listens
				switch how {
				case "let in by a release":
					must(t, ours.Release())
				case "let in by a foreign release":
					javaReleases(t, s, "x", "java2")
				case "it wants too much":
					must(t, other.SetLimit(ctx, 2))
				default:
					leave()
				}
				g := locktest.Get(t, a, 10*time.Second, "the first")
				switch how {
				case "let in by a release", "let in by a foreign release":
					must(t, g.err)
				case "it wants too much":
					is(t, how, g.err, semaphore.ErrLimit)
				default:
					is(t, how, g.err, rlock.ErrNotAcquired)
				}
				redistest.Eventually(t, 10*time.Second, "the second to be the first", func() bool { return len(inLine(t, s, "x")) == 1 })
				pass(t, 20*time.Millisecond) // it asks, listens, and asks again
				waits(t, "the second", b)
				if lease == 0 {
					if how == "it wants too much" {
						javaReleases(t, s, "x", "java2") // one more was taken than there may be
					}
					javaReleases(t, s, "x", "java1")
				}
				g = locktest.Get(t, b, lease+10*time.Second, "the second, which is the first now")
				must(t, g.err)
				leave()
			})
		})
	}
}

// The same for a counter, whose callers are called one after the other.
func TestWhoComesToBeTheFirstOfACounterHearsOfForeignReleases(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"called by a release", "called by a foreign release", "it leaves"} {
		t.Run(how, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				first, second, other := newLiner(t, s), newLiner(t, s), semaphore.NewCounter(dial(t, s, slow()), "x")
				firstCtx, leave := context.WithCancel(ctx)
				defer leave()
				java := func() {
					must(t, s.Do(t, "INCRBY", "x", "1").Error())
					must(t, s.Do(t, "PUBLISH", channel("x"), "1").Error())
				}
				a := start(func() error { return semaphore.NewCounter(first.ses, "x").Acquire(firstCtx, 1) })
				awaitInLine(t, s, "x", 1)
				pass(t, time.Millisecond)
				b := start(func() error { return semaphore.NewCounter(second.ses, "x").Acquire(ctx, 1) })
				awaitInLine(t, s, "x", 2)
				first.isRefused(2) // it listens
				switch how {
				case "called by a release":
					must(t, other.Release(ctx, 1))
				case "called by a foreign release":
					java()
				default:
					leave()
				}
				if err := locktest.Get(t, a, 10*time.Second, "the first"); how == "it leaves" {
					is(t, how, err, rlock.ErrNotAcquired)
				} else {
					must(t, err)
				}
				redistest.Eventually(t, 10*time.Second, "the second to be the first", func() bool { return len(inLine(t, s, "x")) == 1 })
				pass(t, 20*time.Millisecond) // it asks, listens, and asks again
				waits(t, "the second", b)
				java()
				must(t, locktest.Get(t, b, 10*time.Second, "the second, which is the first now"))
			})
		})
	}
}
