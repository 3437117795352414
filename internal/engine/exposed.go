package engine

import "time"

// Redisson sets the lease of a lock to its lockWatchdogTimeout, longer or shorter than what we
// asked for, when it unlocks one of several holds of an owner, and when it renews a reader. It
// never sets less, so that much of a lease is left whatever Redisson does: an exposed claim is
// trusted for no longer between two answers of Redis.

// uncut returns how much of a lease no other process cuts off.
func (c *claim) uncut(lease time.Duration) time.Duration {
	if c.more != nil && c.more.exposed {
		return min(lease, c.lock.s.cfg.RedissonWatchdog)
	}
	return lease
}

// expose sets the leases that the caller of an exposed claim asks for: what is renewed asks for no
// more than it can trust; a fixed lease stands in Redis as it was given.
func (r *request) expose(watchdog time.Duration) {
	r.trusted = min(r.lease, watchdog)
	if r.opts.Lease == 0 {
		r.lease = r.trusted
	}
}

// shortfall returns the lease that an exposed claim must be renewed for so that its holds with
// fixed leases reach their ends, and do not outlive them; 0 if they are trusted up to there.
func (c *claim) shortfall(now time.Duration) time.Duration {
	if c.more == nil || !c.more.exposed {
		return 0
	}
	var until, ends time.Duration
	for x := c.sections; x != nil; x = x.next {
		until = max(until, x.lastFixed(func(h *Hold) time.Duration { return h.until }))
		ends = max(ends, x.lastFixed(func(h *Hold) time.Duration { return h.ends }))
	}
	if until <= c.trust {
		return 0
	}
	return max(min(ends-now, c.lock.s.cfg.RedissonWatchdog), time.Millisecond)
}
