package engine

import (
	"fmt"
	"slices"

	"relock/internal/api"
	"relock/internal/deadlock"
	"relock/internal/holds"
	"relock/internal/kind"
)

// A suspect is a Lock that waits inside of open sections: it may be part of a deadlock. All other
// Locks are of no interest here, and cost nothing.
type suspect struct {
	a        *acquisition // not to be read once ended is set, since it is reused
	lock     *lock
	sections []*section // open ones of private owners that the caller's context lies in, of whatever session
	ended    bool       // guarded by the lock's mutex
	waiting  *deadlock.Waiting
}

var _ deadlock.Suspect = (*suspect)(nil)

// mayBlock notes that the caller waits, if it does so inside of open sections, and looks for a
// deadlock. No mutex may be held.
func (a *acquisition) mayBlock() {
	var sections []*section
	var in []deadlock.Claim
	var watches []*deadlock.Watch
	for x := range sectionsAround(a.around(), holds.OwnerKey{}) { // not those outside of WithOwner and WithoutOwner
		if x.claim.num != 0 && !x.ctx.HasEnded() {
			sections = append(sections, x)
			in = append(in, x.claim.forWatch())
			watches = append(watches, x.claim.lock.s.deadlocks)
		}
	}
	if sections == nil || a.kind.Permits {
		return
	}
	a.unblocked()
	x := &suspect{a: a, lock: a.lock, sections: sections}
	a.suspect = x
	x.waiting = a.lock.s.deadlocks.Begin(x, a.lock.Key(), a.kind.HookName(), in, watches)
}

// unblocked notes that the caller waits no more. No mutex may be held.
func (a *acquisition) unblocked() {
	x := a.suspect
	if x == nil {
		return
	}
	a.suspect = nil
	x.lock.mu.Lock()
	x.ended = true
	x.lock.mu.Unlock()
	x.waiting.Over()
}

// forWatch returns what the claim of a private owner is for package deadlock.
func (c *claim) forWatch() deadlock.Claim {
	return deadlock.Claim{Session: c.lock.s.id, Number: c.num, Key: c.lock.Key()}
}

// LiesIn is for package deadlock. The claim of an open section holds its lock.
func (x *suspect) LiesIn(c deadlock.Claim) bool {
	if !slices.ContainsFunc(x.sections, func(in *section) bool { return !in.ctx.HasEnded() && in.claim.forWatch() == c }) {
		return false
	}
	x.lock.mu.Lock()
	defer x.lock.mu.Unlock()
	return x.lasts()
}

// lasts reports whether the caller waits. The mutex of its lock must be held.
func (x *suspect) lasts() bool {
	return !x.ended && x.a.queued && x.a.given.Load() == nil && x.a.waitErr == nil
}

// Holders is for package deadlock.
func (x *suspect) Holders() (here []deadlock.Claim, blockers func(fields map[string]string) []string, lasts bool) {
	l := x.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if !x.lasts() {
		return nil, nil, false
	}
	prim := x.a.prim
	for c := l.claims; c != nil; c = c.next {
		if c.num != 0 && c.state == held && c.sections != nil && (prim.Kind().Exclusive || c.excludes()) {
			here = append(here, c.forWatch())
		}
	}
	if b, can := prim.(kind.Blocker); can && l.holder == nil { // else no other session has it
		blockers = b.Blockers
	}
	return here, blockers, true
}

// End is for package deadlock: the caller is the victim.
func (x *suspect) End(c deadlock.Cycle) {
	l := x.lock
	l.mu.Lock()
	defer l.unlockInBackground()
	if !x.lasts() {
		return
	}
	x.a.waitErr = fmt.Errorf("%w: %w: %s", ErrNotAcquired, ErrDeadlock, c)
	x.a.wake.Up()
	l.s.log.Warn("relock: deadlock; this Lock ends", "name", api.Shown(x.a.prim.Names().Name()), "cycle", c.String())
}
