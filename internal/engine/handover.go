package engine

import (
	"time"

	"relock/internal/api"
	"relock/locktrace"
)

// Hand-over and sharing: how callers enter a claim that the session has already. Redis hears
// nothing of it, because nothing changes there: the session holds the lock, under the same
// owner, with the same lease.

const (
	// joinFor is for how long readers join a read claim, from when its acquisition was sent:
	// so long a writer of another session is kept waiting at most.
	joinFor = 10 * time.Millisecond

	// joinBeforeWriter is the same once a writer of the session waits. It is more than nothing, for
	// readers that join cost Redis no command, and writers that come meanwhile queue after the first
	// and have the lock one after the other.
	joinBeforeWriter = time.Millisecond
)

// sectionClosed sees to a claim of which a section has closed, and reports whether it goes on. If not,
// it is to be released: no other section is open on it, and no caller can be given the next.
func (c *claim) sectionClosed(now time.Duration) (goesOn bool) {
	l := c.lock
	switch {
	case c.sections != nil || c.state != held || c.account != nil && c.account.Cancels(): // others go on with it, or have ended it
	case c.account != nil && c.account.Left > 0: // others have abandoned a hold, and have lost what was left
		c.leaveStanding()
	case c.account != nil && c.account.LostSections > 0: // others have lost it
		c.retire(lostStanding)
	case l.queue.First != nil && l.handOver(c, now): // mostly no caller waits
		if l.s.trace != nil && c.awaits != aRenewal {
			l.later(c.traceHandedOver)
		}
	case c.keep > 0 && c.keepOn(now):
	default:
		return false
	}
	return true
}

// handOver opens the next section on a claim whose last section has closed, for the caller whose turn it is, or
// keeps the claim for that caller: until a renewal has confirmed it, or the caller has the answer that it waits for. It
// reports false if the claim is to be released.
func (l *lock) handOver(c *claim, now time.Duration) bool {
	a := l.successor(c, now)
	switch {
	case a == nil:
		return false
	case !c.entrable(now):
		return c.awaitRenewal(now)
	case c.run != nil:
		c.run.Remove(&a.member)
		l.give(c, a, now)
	case a.subscribing || a.busy() && !c.kind.Permits:
		return false
	case !l.needContention().turns.Pass(now, c.passUntil, l.s.cfg.HandOverLimit): // the slice is over
		// A session that polls leaves the lock to others for one poll pause: these may poll too, and hear of no release.
		if turns := &l.contention.turns; l.s.pollPause > 0 && turns.Yielded() > now {
			turns.LeaveFor(now, l.s.pollPause)
		}
		return false
	case a.busy():
		l.contention.undelivered, c.awaits = append(l.contention.undelivered, c), theFront
	default:
		l.give(c, a, now)
		if l.holder == nil { // other permits may come free meanwhile: the next front listens
			l.wakeFront()
		}
	}
	return true
}

// successor returns the caller that a claim can be handed over to: the next one of a run, else the front of the
// queue; nil if there is none. It does not check the claim's trust and slice.
func (l *lock) successor(c *claim, now time.Duration) *acquisition {
	front := l.queue.First
	switch r := c.run; {
	case front == nil || l.state != lockOpen:
		return nil
	case r == nil && c.kind.HandsOver && front.Of.wants(c, now):
		return front.Of
	case r == nil || r.Kind == nil || c.noHandOver || c.kind.Fenced && !c.account.HasToken():
		return nil
	default:
		return c.nextOfRun(now)
	}
}

// wants reports whether the caller waits for what the claim has, and none of its attempts may have been granted.
func (a *acquisition) wants(c *claim, now time.Duration) bool {
	return a.wait && a.queued && !a.attempts.MayHaveRun && !a.attempts.MayCome && a.waitErr == nil &&
		a.named == "" && !a.opts.Alone() && a.kind == c.kind && a.n == int(c.n) &&
		(a.deadline == 0 || now < a.deadline) && (!a.kind.Fenced || c.account.HasToken())
}

// enter opens one more section on a claim that is held.
func (c *claim) enter(a *acquisition, now time.Duration) *section {
	if c.except == unrenewed {
		c.except = ordinary // no section wanted it to be renewed when it was due: this caller does
		c.askSoon(now)
	}
	if checking {
		c.checkEntry(now)
	}
	c.awaits = nothing
	x := c.open(a, now)
	if c.account != nil {
		x.token.Store(c.account.Draw())
	}
	return x
}

// give opens a section of c for a caller in the queue and wakes it.
func (l *lock) give(c *claim, a *acquisition, now time.Duration) {
	x := c.enter(a, now)
	if next := a.node.Next; next != nil && c.kind.Permits { // its place in the line stays the session's
		a.passEntry(next.Of)
	}
	stood := c.kind.Permits && a.claim != nil && l.stands(a.claim)
	if a.claim != nil { // it was refused, and may have left only a mark in the line
		a.giveUp()
	}
	a.deliver(x)
	if stood { // its entry has gone: the next caller wants another number, and does not stand in the line yet
		l.askAtOnce()
	}
}

// deliver takes a caller out of the queue that another goroutine has let in, and has it return with a section. From
// here on the acquisition may be reused; a wake-up too many does no harm.
func (a *acquisition) deliver(x *section) {
	l, wake := a.lock, a.wake
	l.queue.Remove(&a.node)
	a.queued, a.claim = false, nil
	if l.queue.First == nil && l.contention != nil && l.contention.listener != nil {
		l.endSubscription()
	}
	a.given.Store(x)
	wake.Up()
}

// accept is the end of an acquisition to which a section was handed over. The lock's mutex must be
// held and is released.
func (a *acquisition) accept(x *section) (accepted *section, err error) {
	switch {
	case x == &x.claim.first: // Redis has let it in, by a message or by the answer for its run
	case x.claim.kind.Shares:
		a.traced.Grant = locktrace.GrantShared
	default:
		a.traced.Grant = locktrace.GrantMemory
	}
	l, end := a.lock, min(x.claim.trust, x.holds.Until)
	l.unlock()
	a.undo = (*acquisition).quit
	// The context is asked first, for that is code of the caller's and may take its time.
	if a.opts.AtLeast == 0 && a.ctx.Err() == nil && !x.ctx.HasEnded() && l.s.now() < end {
		accepted = x
	} else {
		accepted, err = a.acceptLate(x)
	}
	a.undo = nil
	return accepted, err
}

// acceptLate is accept when the caller's context has ended, or what was given: this caller, and the
// watchdog, may be late. It is so too for a lock that is to stand for a while yet, once this caller has it. No mutex may be held.
func (a *acquisition) acceptLate(x *section) (*section, error) {
	l, c := a.lock, x.claim
	var ended error
	if a.ctx.Err() != nil {
		ended = api.NotAcquired(api.OfContext(a.ctx), nil)
	}
	l.mu.Lock()
	now := l.s.now()
	if !x.isOpen(now) {
		c.expire(now)
	} else if ended == nil { // perhaps it was renewed in time
		if a.opts.AtLeast > 0 {
			c.standAtLeast(&a.opts)
		}
		l.unlock()
		return x, nil
	}
	x.first.held.Done = true
	switch x.ctx.Ended() {
	case closed:
		l.unlock()
		return nil, ErrClosed
	case lost: // before the caller woke up. What may stand in Redis is released
		x.holds.Remove(&x.first.held)
		x.leaveLost()
		l.unlock()
		if ended == nil {
			ended = a.again(now)
		}
		return nil, ended
	}
	// The caller does not take the section: the claim is handed over or released, as after an Unlock.
	x.holds.Remove(&x.first.held)
	x.end(released)
	if !c.sectionClosed(now) {
		c.end(nil)
		l.askAtOnce()
	}
	l.unlock()
	return nil, ended
}

// again has a caller start over whose section was lost before it woke up. No mutex may be held.
func (a *acquisition) again(now time.Duration) error {
	a.unblocked()
	a.given.Store(nil)
	a.attempts = attempts{stuck: a.attempts.stuck}
	a.traced.Grant = locktrace.GrantRedis
	a.start = now
	return errAgain
}

// mayShare reports whether the caller can have a section beside others on a read claim: it is
// an unnamed reader whose lease is renewed.
func (a *acquisition) mayShare(c *claim, now time.Duration) bool {
	return a.kind.Shares && a.named == "" && a.opts.Lease == 0 && now < c.passUntil && c.entrable(now)
}

// shareFrom lets readers join a claim that Redis has just granted, and opens sections for those that
// wait.
func (l *lock) shareFrom(c *claim, sent time.Duration) {
	if c.noHandOver || c.num == 0 || l.s.cfg.HandOverLimit < 0 {
		return
	}
	now := l.s.now()
	l.share, c.passUntil = c, sent+joinFor
	for a := range l.queue.All() {
		switch {
		case a.kind.Exclusive:
			c.passUntil = min(c.passUntil, now+joinBeforeWriter)
		case a.mayShare(c, now) && !a.busy() && a.wants(c, now):
			l.give(c, a, now)
		}
	}
	l.wakeFront()
}
