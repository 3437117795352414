package engine

import (
	"time"

	"relock/internal/kind"
)

// A lock that is taken with AtLeast stands until a while after it was acquired, also if it is unlocked before: the
// last Unlock, and Close, leave it to its lease then, which is cut to what is missing. Redis ends it.

// leaves reports whether a lock can be left standing.
func leaves(p Primitive) bool {
	_, ok := p.(kind.Leaver)
	return ok
}

// standAtLeast notes that the lock is to stand until d after now, when it has just been acquired.
func (c *claim) standAtLeast(d time.Duration) {
	m := c.needAccount()
	m.AtLeast = max(m.AtLeast, c.lock.s.now()+d)
}

// mustStand returns for how long the lock has yet to stand, at least 1 ms; 0 if it need not.
func (c *claim) mustStand(now time.Duration) time.Duration {
	if c.account == nil || c.account.AtLeast <= now {
		return 0
	}
	return max(c.account.AtLeast-now, time.Millisecond)
}
