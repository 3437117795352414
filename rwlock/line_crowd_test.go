package rwlock_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/rlock"
	"relock/rwlock"
)

// A read-write lock has no script that does work which grows with the writers that wait (R44).
func TestNoScriptGrowsWithTheLineOfWriters(t *testing.T) {
	wait := func(ctx context.Context, ses *rlock.Session) error {
		_, _, err := crowded(ses).Lock(ctx)
		return err
	}
	free := func(c *locktest.CrowdScene) { c.Do("DEL", locktest.Many) }
	acts := locktest.CrowdActs(wait, func(ctx context.Context, c *locktest.CrowdScene) { written(ctx, c) }, free)
	for what, act := range locktest.CrowdActs(wait, func(ctx context.Context, c *locktest.CrowdScene) { read(ctx, c) }, free) {
		acts[what+", beside a reader"] = act
	}
	maps.Copy(acts, unlocksBesideACrowd)
	maps.Copy(acts, callsBesideACrowd)
	locktest.Crowd{Slow: "U", Hold: wait, Wait: wait, Acts: acts}.Check(t)
}

// crowded is the lock that a crowd waits for.
func crowded(ses *rlock.Session) *rwlock.RWMutex { return rwlock.New(ses, locktest.Many) }

// written begins a scene: the lock is written, and the crowd waits.
func written(ctx context.Context, c *locktest.CrowdScene, opts ...rlock.LockOption) *rlock.Hold {
	_, h := hold(c, ctx, crowded(c.Session()).Lock, opts...)
	c.Come()
	return h
}

// read begins one in which it is read.
func read(ctx context.Context, c *locktest.CrowdScene) *rlock.Hold {
	_, h := hold(c, ctx, crowded(c.Session()).RLock)
	c.Come()
	return h
}

var unlocksBesideACrowd = map[string]locktest.CrowdAct{
	"Unlock": func(ctx context.Context, c *locktest.CrowdScene) {
		h := written(ctx, c)
		c.From()
		must(c, h.Unlock())
	},
	"Unlock of a named writer": func(ctx context.Context, c *locktest.CrowdScene) {
		h := written(rlock.WithOwner(ctx, "me"), c)
		c.From()
		must(c, h.Unlock())
	},
	"Unlock that leaves the lock standing": func(ctx context.Context, c *locktest.CrowdScene) {
		h := written(ctx, c, rlock.AtLeast(time.Minute))
		c.From()
		must(c, h.Unlock())
	},
	"Unlock of a writer who goes on to read": func(ctx context.Context, c *locktest.CrowdScene) {
		m := crowded(c.Session())
		section, h := hold(c, ctx, m.Lock)
		hold(c, section, m.RLock)
		c.Come()
		c.From()
		must(c, h.Unlock())
	},
	"Unlock of the last reader": func(ctx context.Context, c *locktest.CrowdScene) {
		h := read(ctx, c)
		c.From()
		must(c, h.Unlock())
	},
	"Unlock of one of two readers": func(ctx context.Context, c *locktest.CrowdScene) {
		hold(c, ctx, crowded(c.Session()).RLock)
		h := read(ctx, c)
		c.From()
		must(c, h.Unlock())
	},
}

var callsBesideACrowd = map[string]locktest.CrowdAct{
	"RLock": func(ctx context.Context, c *locktest.CrowdScene) {
		read(ctx, c)
		ses := c.Session()
		c.From()
		_, _, err := crowded(ses).RLock(ctx)
		must(c, err)
	},
	"TryRLock of a lock that is written": func(ctx context.Context, c *locktest.CrowdScene) {
		written(ctx, c)
		ses := c.Session()
		c.From()
		_, _, _ = crowded(ses).TryRLock(ctx)
	},
	"TryLock of what is free": func(ctx context.Context, c *locktest.CrowdScene) {
		ses := c.Session()
		c.Come()
		c.From()
		_, _, _ = crowded(ses).TryLock(ctx)
	},
	"ForceUnlock": func(ctx context.Context, c *locktest.CrowdScene) {
		written(ctx, c)
		ses := c.Session()
		c.From()
		_, err := crowded(ses).ForceUnlock(ctx)
		must(c, err)
	},
}
