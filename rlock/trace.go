package rlock

import "time"

// Trace is a set of hooks, in the manner of net/http/httptrace. Any of them may be
// nil. They are called synchronously, some while a lock operation waits for them,
// so they must be quick and must not call back into the session.
type Trace struct {
	// Attempt: an acquire script was answered; err is nil if it was granted or
	// refused because somebody else holds the lock.
	Attempt func(name, owner string, granted bool, err error)

	// Waiting: a caller begins to wait for somebody else's lock to be released.
	Waiting func(name, owner string)

	// Acquired: a hold begins, wait after Lock was called. holds is how many of this
	// lock the owner now has in this session: 1 for an outermost Lock.
	Acquired func(name, owner string, holds int, wait time.Duration)

	// HandedOver: the lock passed from one owner of the session to another in memory; the
	// hash follows. Acquired and Released are called as well.
	HandedOver func(name, from, to string)

	// Released: a hold was unlocked, held after it began; err is what Unlock
	// returns.
	Released func(name, owner string, held time.Duration, err error)

	// Renewed: a batch of renewals came back, of n holds, permits, or sets of ids that
	// go along with a hold.
	Renewed func(n int, err error)

	// Lost: an owner lost its lock, with the reason in words.
	Lost func(name, owner, reason string)
}

// The methods below make a nil Trace and nil hooks harmless.

func (t *Trace) attempt(name, owner string, granted bool, err error) {
	if t != nil && t.Attempt != nil {
		t.Attempt(name, owner, granted, err)
	}
}

func (t *Trace) waiting(name, owner string) {
	if t != nil && t.Waiting != nil {
		t.Waiting(name, owner)
	}
}

func (t *Trace) acquired(name, owner string, holds int, wait time.Duration) {
	if t != nil && t.Acquired != nil {
		t.Acquired(name, owner, holds, wait)
	}
}

func (t *Trace) handedOver(name, from, to string) {
	if t != nil && t.HandedOver != nil {
		t.HandedOver(name, from, to)
	}
}

func (t *Trace) released(name, owner string, held time.Duration, err error) {
	if t != nil && t.Released != nil {
		t.Released(name, owner, held, err)
	}
}

func (t *Trace) renewed(n int, err error) {
	if t != nil && t.Renewed != nil {
		t.Renewed(n, err)
	}
}

func (t *Trace) lost(name, owner, reason string) {
	if t != nil && t.Lost != nil {
		t.Lost(name, owner, reason)
	}
}
