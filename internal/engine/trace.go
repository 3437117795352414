package engine

import (
	"time"
)

// Trace are the hooks that package rlock documents. They are called outside of every mutex,
// and never by the watchdog. A nil Trace and nil hooks are harmless.
type Trace struct {
	Attempt    func(name, owner string, granted bool, err error)
	Waiting    func(name, owner string)
	Acquired   func(name, owner string, holds int, wait time.Duration)
	HandedOver func(name, from, to string)
	Released   func(name, owner string, held time.Duration, err error)
	Renewed    func(n int, err error)
	Lost       func(name, owner, reason string)
}

func (t *Trace) attempt(c *claim, granted bool, err error) {
	if t != nil && t.Attempt != nil {
		t.Attempt(c.prim.Names().Name(), c.ownerID(), granted, err)
	}
}

func (t *Trace) waiting(a *acquisition) {
	if t != nil && t.Waiting != nil {
		owner := a.named
		if a.claim != nil {
			owner = a.claim.ownerID()
		}
		t.Waiting(a.prim.Names().Name(), owner)
	}
}

func (t *Trace) acquired(a *acquisition, c *claim, holds int) {
	if t != nil && t.Acquired != nil {
		t.Acquired(a.prim.Names().Name(), c.ownerID(), holds, c.lock.s.now()-a.start)
	}
}

func (t *Trace) handedOver(c *claim) {
	if t != nil && t.HandedOver != nil {
		owner := c.ownerID()
		t.HandedOver(c.prim.Names().Name(), owner, owner)
	}
}

func (t *Trace) released(c *claim, held time.Duration, err error) {
	if t != nil && t.Released != nil {
		t.Released(c.prim.Names().Name(), c.ownerID(), held, err)
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
