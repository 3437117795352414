package locktest

import (
	"context"
	"time"

	"relock/rlock"
)

// CrowdActs returns what the sessions do that stand in the line, or come: of any kind of lock. taken begins a scene in
// which the lock is held and the crowd waits; free then has it be free, as when a lease has ended, and nobody knows yet.
func CrowdActs(wait func(context.Context, *rlock.Session) error, taken CrowdAct, free func(c *CrowdScene)) map[string]CrowdAct {
	return map[string]CrowdAct{
		"a session comes and leaves": func(ctx context.Context, c *CrowdScene) {
			taken(ctx, c)
			ses := c.Session()
			c.From()
			ctx, leave := context.WithCancel(ctx)
			defer leave()
			ended := c.Enter(ctx, ses, false, wait)
			leave()
			<-ended
			c.Await(2)
		},
		"a session comes, and the lock has ended": func(ctx context.Context, c *CrowdScene) {
			taken(ctx, c)
			free(c)
			ses := c.Session()
			c.From()
			go func() { _ = wait(ctx, ses) }()
			c.Await(1)
		},
		"one in the middle leaves": func(ctx context.Context, c *CrowdScene) {
			taken(ctx, c)
			ctx, leave := context.WithCancel(ctx)
			defer leave()
			ended := c.Enter(ctx, c.Session(), true, wait)
			c.From()
			leave()
			<-ended
			c.Await(1)
		},
		"one in the middle looks": func(ctx context.Context, c *CrowdScene) {
			taken(ctx, c)
			c.Enter(ctx, c.Session(crowdLooks), true, wait)
			c.Looks(func(*CrowdScene) {})
		},
		"one in the middle looks, and the lock has ended": func(ctx context.Context, c *CrowdScene) {
			taken(ctx, c)
			c.Enter(ctx, c.Session(crowdLooks), true, wait)
			c.Looks(free)
		},
	}
}

// crowdLooks is how often a session looks that is to look.
const crowdLooks = 30 * time.Millisecond
