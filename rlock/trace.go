package rlock

import "time"

// Trace is a set of hooks, in the manner of net/http/httptrace. Any of them may be nil. Calls
// are synchronous, and a lock operation may wait for them. A hook must be quick and must not
// call back into the session.
type Trace struct {
	// Attempt: an acquire script was answered. err is nil if the lock was granted, or
	// refused because another owner holds it.
	Attempt func(name, owner string, granted bool, err error)
	// Waiting: a caller begins to wait for a release.
	Waiting func(name, owner string)
	// Acquired: a hold begins, wait after Lock was called. holds is how many of this lock
	// the owner now has in this session: 1 for an outermost Lock.
	Acquired func(name, owner string, holds int, wait time.Duration)
	// HandedOver: the lock passed from one section to the next in memory. Both have the same
	// owner id. Acquired and Released are called as well.
	HandedOver func(name, from, to string)
	// Released: a hold was unlocked, held after it began. err is what Unlock returns.
	Released func(name, owner string, held time.Duration, err error)
	// Renewed: a batch of n renewals was answered.
	Renewed func(n int, err error)
	// Lost: an owner lost its lock, with the reason in words.
	Lost func(name, owner, reason string)
}
