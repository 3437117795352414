package engine

import "time"

// Redisson sets the lease of a lock to its lockWatchdogTimeout, longer or shorter than what we
// asked for, when it unlocks one of several holds of an owner, and when it renews a reader. It
// never sets less, so that much of a lease is left whatever Redisson does: an exposed claim is
// trusted for no longer between two answers of Redis. That is claim.safeLease; never if the claim is not
// exposed. It is if its owner is named, so that another process may hold under the same name, or if
// it reads, and others do too.

// shortfall returns the lease that an exposed claim must be renewed for so that its holds with
// fixed leases reach their ends, and do not outlive them; 0 if they are trusted up to there.
func (c *claim) shortfall(now time.Duration) time.Duration {
	if c.safeLease == never {
		return 0
	}
	var until, ends time.Duration
	for x := c.sections; x != nil; x = x.next {
		u, e := x.holds.LastFixed(nil)
		until, ends = max(until, u), max(ends, e)
	}
	if until <= c.trust {
		return 0
	}
	return max(min(ends-now, c.safeLease), time.Millisecond)
}
