package semaphore_test

import (
	"context"
	"fmt"
	"testing"

	"relock/internal/test/locktest"
	"relock/rlock"
	"relock/semaphore"
)

// A semaphore has no script that does work which grows with the waiters (R44): whether each wants one permit, or more
// than are free at a time, or so many that it is called.
func TestNoScriptOfASemaphoreGrowsWithTheLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wants, limit int
		slow         string
	}{{1, 20, "Q"}, {3, 20, ""}, {65, 130, ""}} {
		t.Run(fmt.Sprintf("each wants %d", c.wants), func(t *testing.T) {
			k := permitsCrowd{c.wants, c.limit}
			locktest.Crowd{
				Slow: c.slow, Wait: k.wait, Acts: k.acts(),
				Hold: func(ctx context.Context, ses *rlock.Session) error {
					_, _, err := k.of(ses).Acquire(ctx, c.limit)
					return err
				},
			}.Check(t)
		})
	}
}

// A permitsCrowd is what the waiters of a semaphore want, and its limit.
type permitsCrowd struct{ wants, limit int }

func (k permitsCrowd) of(ses *rlock.Session) *semaphore.Semaphore {
	return semaphore.New(ses, locktest.Many, k.limit)
}

func (k permitsCrowd) wait(ctx context.Context, ses *rlock.Session) error {
	_, _, err := k.of(ses).Acquire(ctx, k.wants)
	return err
}

// taken begins a scene: one permit is taken, and all others too, and the crowd waits.
func (k permitsCrowd) taken(ctx context.Context, c *locktest.CrowdScene) (m *semaphore.Semaphore, one, rest *semaphore.Permits) {
	m = k.of(c.Session())
	_, one, err := m.Acquire(ctx, 1)
	must(c, err)
	_, rest, err = m.Acquire(ctx, k.limit-1)
	must(c, err)
	c.Come()
	return m, one, rest
}

// free begins one in which all permits but one are free, and nobody has been let in yet.
func (k permitsCrowd) free(ctx context.Context, c *locktest.CrowdScene) *semaphore.Semaphore {
	m := k.of(c.Session())
	_, _, err := m.Acquire(ctx, 1)
	must(c, err)
	c.Come()
	return m
}

func (k permitsCrowd) acts() map[string]locktest.CrowdAct {
	acts := locktest.CrowdActs(k.wait, func(ctx context.Context, c *locktest.CrowdScene) { k.taken(ctx, c) },
		func(c *locktest.CrowdScene) { c.Do("SET", locktest.Many, fmt.Sprint(k.limit-1)) })
	for what, act := range map[string]locktest.CrowdAct{
		"Release of one": func(ctx context.Context, c *locktest.CrowdScene) {
			_, one, _ := k.taken(ctx, c)
			c.From()
			must(c, one.Release())
		},
		"Release of all but one": func(ctx context.Context, c *locktest.CrowdScene) {
			_, _, rest := k.taken(ctx, c)
			c.From()
			must(c, rest.Release())
		},
		"ReleaseByID": func(ctx context.Context, c *locktest.CrowdScene) {
			m, _, rest := k.taken(ctx, c)
			c.From()
			must(c, m.ReleaseByID(ctx, rest.IDs()...))
		},
		"SetLimit from few to many": func(ctx context.Context, c *locktest.CrowdScene) {
			m, _, _ := k.taken(ctx, c)
			c.From()
			must(c, m.SetLimit(ctx, 50*k.limit))
		},
		"SetLimit to less than the crowd wants": func(ctx context.Context, c *locktest.CrowdScene) {
			m := k.free(ctx, c)
			c.From()
			must(c, m.SetLimit(ctx, max(k.wants-1, 1)))
		},
		"Delete": func(ctx context.Context, c *locktest.CrowdScene) {
			m, _, _ := k.taken(ctx, c)
			c.From()
			must(c, m.Delete(ctx))
		},
		"permits expire": func(ctx context.Context, c *locktest.CrowdScene) {
			m, _, rest := k.taken(ctx, c)
			for _, id := range raw(rest) {
				c.Do("ZADD", zset(locktest.Many), "1", id)
			}
			c.From()
			_, err := m.Available(ctx)
			must(c, err)
		},
		"TryAcquire": func(ctx context.Context, c *locktest.CrowdScene) {
			m := k.free(ctx, c)
			c.From()
			_, _, _ = m.TryAcquire(ctx, k.wants)
		},
	} {
		acts[what] = act
	}
	return acts
}

// A counter has none either.
func TestNoScriptOfACounterGrowsWithTheLine(t *testing.T) {
	of := func(ses *rlock.Session) *semaphore.Counter { return semaphore.NewCounter(ses, locktest.Many) }
	wait := func(ctx context.Context, ses *rlock.Session) error { return of(ses).Acquire(ctx, 1) }
	empty := func(ctx context.Context, c *locktest.CrowdScene) *semaphore.Counter {
		counter := of(c.Session())
		must(c, counter.Add(ctx, 1))
		must(c, counter.TryAcquire(ctx, 1))
		c.Come()
		return counter
	}
	acts := locktest.CrowdActs(wait, func(ctx context.Context, c *locktest.CrowdScene) { empty(ctx, c) },
		func(c *locktest.CrowdScene) { c.Do("SET", locktest.Many, "20") })
	for what, do := range map[string]func(context.Context, *semaphore.Counter) error{
		"Release":    func(ctx context.Context, c *semaphore.Counter) error { return c.Release(ctx, 20) },
		"Add":        func(ctx context.Context, c *semaphore.Counter) error { return c.Add(ctx, 20) },
		"Drain":      func(ctx context.Context, c *semaphore.Counter) error { return second(c.Drain(ctx)) },
		"Delete":     func(ctx context.Context, c *semaphore.Counter) error { return c.Delete(ctx) },
		"TrySet":     func(ctx context.Context, c *semaphore.Counter) error { return second(c.TrySet(ctx, 20)) },
		"Available":  func(ctx context.Context, c *semaphore.Counter) error { return second(c.Available(ctx)) },
		"TryAcquire": func(ctx context.Context, c *semaphore.Counter) error { _ = c.TryAcquire(ctx, 1); return nil },
	} {
		acts[what] = func(ctx context.Context, c *locktest.CrowdScene) {
			counter := empty(ctx, c)
			if what == "TrySet" {
				must(c, counter.Delete(ctx))
			}
			c.From()
			must(c, do(ctx, counter))
		}
	}
	locktest.Crowd{
		Wait: wait, Acts: acts,
		Hold: func(context.Context, *rlock.Session) error { return nil },
	}.Check(t)
}
