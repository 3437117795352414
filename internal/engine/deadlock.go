package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"relock/internal/deadlock"
	"relock/internal/inbox"
)

// A suspect is a Lock that waits inside of open sections: it may be part of a deadlock. All other
// Locks are of no interest here, and cost nothing.
type suspect struct {
	a        *acquisition // not to be looked at once over is set, since it is reused
	lock     *lock
	sections []*section // that the caller's context lies in, of whatever session
	over     bool       // guarded by the lock's mutex
	waiting  *deadlock.Waiting
}

var _ deadlock.Suspect = (*suspect)(nil)

const (
	// lookTimeout bounds one question to Redis, or one message.
	lookTimeout = 500 * time.Millisecond
	// maxHolders is how many holders of a lock are followed at a time.
	maxHolders = 64
)

// actsIn returns the open sections that ctx lies in, those of named owners excepted, and those
// outside of WithOwner and WithoutOwner. It runs code of the caller's contexts.
func actsIn(ctx context.Context) (sections []*section) {
	for {
		x, ok := ctx.Value(ownerKey{}).(*section)
		if !ok {
			return sections
		}
		if x.claim.num != 0 && !x.over() {
			sections = append(sections, x)
		}
		ctx = x.parent
	}
}

// mayBlock notes that the caller waits, if it does so inside of open sections, and looks for a
// deadlock. No mutex may be held.
func (a *acquisition) mayBlock() {
	ctx := a.ctx
	if a.opts.Keeps != nil {
		ctx = a.opts.Keeps
	}
	sections := actsIn(ctx)
	if sections == nil || a.prim.Kind().Permits {
		return
	}
	a.unblocked()
	x := &suspect{a: a, lock: a.lock, sections: sections}
	var in []deadlock.Claim
	var watches []*deadlock.Watch
	for _, of := range sections {
		in = append(in, of.claim.forWatch())
		watches = append(watches, of.claim.lock.s.deadlocks)
	}
	a.suspect = x
	x.waiting = a.lock.s.deadlocks.Begin(x, a.lock.Key(), a.prim.Kind().HookName(), in, watches)
}

// unblocked notes that the caller waits no more. No mutex may be held.
func (a *acquisition) unblocked() {
	x := a.suspect
	if x == nil {
		return
	}
	a.suspect = nil
	x.lock.mu.Lock()
	x.over = true
	x.lock.mu.Unlock()
	x.waiting.Over()
}

// forWatch returns what the claim of a private owner is for package deadlock.
func (c *claim) forWatch() deadlock.Claim {
	return deadlock.Claim{Session: c.lock.s.id, Number: c.num, Key: c.lock.Key()}
}

// LiesIn is for package deadlock. The claim of an open section holds its lock.
func (x *suspect) LiesIn(c deadlock.Claim) bool {
	return slices.ContainsFunc(x.sections, func(in *section) bool { return !in.over() && in.claim.forWatch() == c }) && x.lasts()
}

// lasts reports whether the caller waits. The mutex of its lock must not be held.
func (x *suspect) lasts() bool {
	x.lock.mu.Lock()
	defer x.lock.mu.Unlock()
	return x.waits()
}

// waits is lasts with the mutex held.
func (x *suspect) waits() bool {
	return !x.over && x.a.queued && x.a.given.Load() == nil && x.a.hopeless == nil
}

// Holders is for package deadlock.
func (x *suspect) Holders(ask bool) []deadlock.Claim {
	l := x.lock
	l.mu.Lock()
	if !x.waits() {
		l.mu.Unlock()
		return nil
	}
	prim := x.a.prim
	exclusive := prim.Kind().Exclusive
	var holders []deadlock.Claim
	for c := l.claims; c != nil; c = c.next {
		if c.num != 0 && c.state == held && c.sections != nil && (exclusive || c.excludes()) {
			holders = append(holders, c.forWatch())
		}
	}
	known := l.holder != nil // no other session has it
	l.mu.Unlock()
	b, can := prim.(Blocker)
	if !ask || known || !can || l.s.redis.Inbox.Deaf() {
		return holders
	}
	ctx, cancel := context.WithTimeout(l.s.life.Closing, lookTimeout)
	defer cancel()
	fields, err := l.s.redis.Client.Do(ctx, l.s.redis.Client.B().Hgetall().Key(l.Key()).Build()).AsStrMap()
	if err != nil || !x.lasts() {
		return nil
	}
	for _, owner := range b.Blockers(fields) {
		c, ok := deadlock.ParseClaim(owner, l.Key())
		if ok && !slices.Contains(holders, c) && len(holders) < maxHolders {
			holders = append(holders, c)
		}
	}
	return holders
}

// Send is for package deadlock. What is lost is made up for by the next search.
func (x *suspect) Send(session, text string) {
	s := x.lock.s
	if s.redis.Inbox.Deaf() {
		return
	}
	ctx, cancel := context.WithTimeout(s.life.Closing, lookTimeout)
	defer cancel()
	if err := inbox.Tell(ctx, s.redis.Client, session, text); err != nil {
		s.notify(func() { s.cfg.Logger.Debug("relock: a search for a deadlock has ended early", "error", err) })
	}
}

// End is for package deadlock: the caller is the victim.
func (x *suspect) End(c deadlock.Cycle) {
	l := x.lock
	l.mu.Lock()
	defer l.unlockBehind()
	if !x.waits() {
		return
	}
	x.a.hopeless = fmt.Errorf("%w: %w: %s", ErrNotAcquired, ErrDeadlock, c)
	wakeUp(x.a.wake)
	name, text := x.a.prim.Names().Name(), c.String()
	l.s.notify(func() { l.s.cfg.Logger.Warn("relock: deadlock; this Lock ends", "name", name, "cycle", text) })
}
