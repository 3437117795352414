package claim_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// A trustCaller is one goroutine of a trustRun.
type trustCaller struct {
	*trustRun
	m    locktest.Mutex
	rng  *rand.Rand
	who  string
	held []trusted
}

// A trusted is a hold, and the context that Lock returned with it.
type trusted struct {
	hold  *rlock.Hold
	ctx   context.Context
	fixed bool // its lease is
}

// call takes the lock, does some things with it, and gives it back.
func (c *trustCaller) call() {
	time.Sleep(upTo(c.rng, 500))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	name := []string{"ann", "bob", "", ""}[c.rng.IntN(4)]
	if name != "" {
		ctx = rlock.WithOwner(ctx, name)
	}
	waits := ctx
	if c.rng.IntN(4) == 0 {
		var end context.CancelFunc
		waits, end = context.WithTimeout(ctx, upTo(c.rng, 5000))
		defer end()
	}
	c.lock(waits)
	for n := c.rng.IntN(8); n > 0 && len(c.held) > 0; n-- {
		time.Sleep([]time.Duration{0, upTo(c.rng, 30), upTo(c.rng, 1000), upTo(c.rng, 5000)}[c.rng.IntN(4)])
		c.check()
		switch x := c.held[c.rng.IntN(len(c.held))]; c.rng.IntN(6) {
		case 0, 1:
			if name != "" && c.rng.IntN(3) == 0 {
				c.lock(ctx)
			} else {
				c.lock(x.ctx)
			}
		case 2, 3:
			if x.fixed {
				c.extend(x)
			}
		case 4:
			if len(c.held) > 1 {
				c.unlock()
			}
		case 5:
			if c.rng.IntN(6) == 0 {
				cancel()
			}
		}
		c.check()
	}
	for len(c.held) > 0 {
		c.unlock()
		c.check()
	}
}

func (c *trustCaller) lock(ctx context.Context) {
	opts := []rlock.LockOption{rlock.Wait(90 * time.Second)}
	switch c.rng.IntN(4) {
	case 0:
		opts = nil
	case 1:
		opts[0] = rlock.Wait(upTo(c.rng, 3000))
	}
	fixed, lock := c.rng.IntN(2) == 0, c.m.Lock
	if opts == nil {
		lock = c.m.TryLock
	}
	if fixed {
		opts = append(opts, rlock.Lease(upTo(c.rng, 30_000)))
	}
	c.tell("%s locks, with a lease of its own: %v", c.who, fixed)
	section, h, err := lock(ctx, opts...)
	if err != nil {
		c.tell("%s: Lock: %v", c.who, err)
		return
	}
	c.got.Add(1)
	c.tell("%s is in as %s, for %v; Redis keeps it for %v", c.who, h.Owner(), h.Remaining(), c.s.Mini.TTL("x"))
	c.held = append(c.held, trusted{h, section, fixed})
	c.check()
}

func (c *trustCaller) extend(x trusted) {
	d := upTo(c.rng, []int{500, 30_000}[c.rng.IntN(2)])
	ctx, cancel := context.WithTimeout(context.Background(), upTo(c.rng, 5000))
	defer cancel()
	err := x.hold.Extend(ctx, d)
	c.tell("%s: Extend by %v: %v; it has %v, in Redis %v", c.who, d, err, x.hold.Remaining(), c.s.Mini.TTL("x"))
}

func (c *trustCaller) unlock() {
	i := c.rng.IntN(len(c.held))
	h := c.held[i].hold
	c.held = slices.Delete(c.held, i, i+1)
	if c.rng.IntN(4) == 0 {
		h.UnlockAsync()
		c.tell("%s: UnlockAsync", c.who)
		return
	}
	c.tell("%s unlocks", c.who)
	c.tell("%s: Unlock: %v", c.who, h.Unlock())
}

// check compares what the caller may trust in with what stands in Redis.
func (c *trustCaller) check() {
	const slack = 2 * time.Millisecond // from one question to the next
	for _, x := range c.held {
		left := x.hold.Remaining()
		ttl, count := c.s.Mini.TTL("x"), c.s.Mini.HGet("x", x.hold.Owner())
		if left > slack && (count == "" || ttl < left-slack) {
			c.bad.Store(true)
			c.tell("WRONG: %s trusts in %v as %s; Redis keeps %q holds for %v", c.who, left, x.hold.Owner(), count, ttl)
		}
	}
}
