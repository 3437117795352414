package line_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/rlock"
)

// Neither a plain nor a fair lock has a script that does work which grows with the waiters (R44).
func TestNoScriptOfALockGrowsWithTheLine(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		crowdOf(func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, locktest.Many) }, "z").Check(t)
	})
	t.Run("fair", func(t *testing.T) {
		crowdOf(func(s *rlock.Session) *rlock.Mutex { return fairlock.New(s, locktest.Many).Mutex }, "").Check(t)
	})
}

// crowdOf has what may happen to a lock.
func crowdOf(mutex func(*rlock.Session) *rlock.Mutex, slow string) locktest.Crowd {
	wait := func(ctx context.Context, ses *rlock.Session) error {
		_, _, err := mutex(ses).Lock(ctx)
		return err
	}
	// held begins a scene: the lock is held, and the crowd waits for it.
	held := func(ctx context.Context, c *locktest.CrowdScene, opts ...rlock.LockOption) *rlock.Hold {
		_, h, err := mutex(c.Session()).Lock(ctx, opts...)
		must(c, err)
		c.Come()
		return h
	}
	acts := locktest.CrowdActs(wait, func(ctx context.Context, c *locktest.CrowdScene) { held(ctx, c) },
		func(c *locktest.CrowdScene) { c.Do("DEL", locktest.Many) })
	for what, act := range map[string]locktest.CrowdAct{
		"Unlock": func(ctx context.Context, c *locktest.CrowdScene) {
			h := held(ctx, c)
			c.From()
			must(c, h.Unlock())
		},
		"Unlock of a named owner": func(ctx context.Context, c *locktest.CrowdScene) {
			h := held(rlock.WithOwner(ctx, "me"), c)
			c.From()
			must(c, h.Unlock())
		},
		"Unlock that leaves the lock standing": func(ctx context.Context, c *locktest.CrowdScene) {
			h := held(ctx, c, rlock.AtLeast(time.Minute))
			c.From()
			must(c, h.Unlock())
		},
		"ForceUnlock": func(ctx context.Context, c *locktest.CrowdScene) {
			held(ctx, c)
			ses := c.Session()
			c.From()
			_, err := mutex(ses).ForceUnlock(ctx)
			must(c, err)
		},
		"TryLock of what is free": func(ctx context.Context, c *locktest.CrowdScene) {
			ses := c.Session()
			c.Come()
			c.From()
			_, _, _ = mutex(ses).TryLock(ctx)
		},
	} {
		acts[what] = act
	}
	return locktest.Crowd{Hold: wait, Wait: wait, Slow: slow, Acts: acts}
}
