package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"relock/internal/holds"
	"relock/internal/kind"
	"relock/locktrace"
)

// nestNamed is a Lock of a named owner for which this session has a claim already. The lock's
// mutex must be held and is released.
func (a *acquisition) nestNamed(c *claim) (*Hold, context.Context, error) {
	l := a.lock
	err := errAgain
	switch now := l.s.now(); {
	case c.state != asking && c.sections.isOpen(now):
		x := c.sections
		h, section, err := a.nest(x, true)
		if errors.Is(err, ErrLost) && !slices.Contains(slices.Collect(sectionsAround(a.ctx, sectionKey{})), x) {
			a.attempts.Forget() // the section hears of the loss; a caller that has no part in it takes the lock anew
			err = errAgain
		}
		return h, section, err
	case c.state != asking:
		c.expire(now)
	case !a.wait && (c.awaits != anAnswer || c.run != nil): // the owner itself waits for it
		err = ErrNotAcquired
	default: // the owner waits, or a TryLock of it asks: this caller waits for the outcome
		err = cmp.Or(a.awaitEarlier(c), err)
	}
	l.unlock()
	return nil, nil, a.sleepBeforeRetry(err)
}

// awaitEarlier waits until no command of the claim is under way; a TryLock, of a claim that asks, for the
// answer to the attempt that is. The lock's mutex must be held; it is released meanwhile and held
// again at the end.
func (a *acquisition) awaitEarlier(c *claim) error {
	if c.account == nil || !c.account.Busy {
		return nil
	}
	l := a.lock
	nested := c.state == held // else the owner itself waits for the lock
	l.unlock()
	a.undo = (*acquisition).quit
	own, stop := context.WithCancel(a.ctx)
	defer stop()
	if !l.s.inSection(a.ctx) { // Shutdown does not find it in the queue
		defer context.AfterFunc(l.s.life.Drains, stop)()
	}
	ctx, cancel := a.bounded(own, a.queued)
	defer cancel()
	a.undo = nil
	l.mu.Lock()
	answered := c.awaitAnswer(ctx, true)
	if answered && a.wait && c.state == asking { // the owner was refused, and waits, and so does this caller
		l.unlock()
		if l.s.trace != nil {
			a.undo = (*acquisition).quit
			a.traceWaiting(c)
			a.undo = nil
		}
		l.mu.Lock()
		answered = c.awaitAnswer(ctx, false)
	}
	if answered {
		return nil
	}
	if nested {
		a.attempts.Err = errEarlier
	}
	l.unlock()
	a.undo = (*acquisition).quit
	err := a.ended()
	a.undo = nil
	l.mu.Lock()
	return err
}

// errEarlier is why a caller could not even ask.
var errEarlier = fmt.Errorf("%w: an earlier command of this owner has no answer yet", ErrUnavailable)

// nest is a Lock in a section of the lock; byName says that the caller came in under the owner's
// name, not through the section. The lock's mutex must be held and is released.
func (a *acquisition) nest(x *section, byName bool) (*Hold, context.Context, error) {
	l, c := a.lock, x.claim
	h := &Hold{x, holds.Hold{Side: uint8(a.kind.Side)}}
	if l.state != lockOpen {
		l.unlock()
		return nil, nil, ErrClosed
	}
	var err error
	if c.countsHere() {
		err = a.nestLocally(x, h)
	} else {
		err = a.nestInRedis(x, h, byName)
	}
	if err != nil {
		l.unlock()
		return nil, nil, err
	}
	a.traced.Nested, a.traced.Holds = true, int(x.holds.Live[0]+x.holds.Live[1])
	if l.s.trace != nil {
		x.holds.Follow(&h.held, l.s.trace.NewHold(&a.traced))
	}
	l.unlock()
	a.nested, a.undo = h, (*acquisition).quitHold
	section := h.ownContext(x.nestedContext(a.ctx))
	a.nested, a.undo = nil, nil
	return h, section, nil
}

// nestLocally counts a hold in a section that shares its claim.
func (a *acquisition) nestLocally(x *section, h *Hold) error {
	c, now := x.claim, a.lock.s.now()
	if a.kind != c.kind {
		return answer{Answer: kind.Answer{Value: 1}}.never(a.prim) // what the script says to a reader that would write
	}
	if a.opts.Lease > 0 {
		h.fix(now, a.opts.Lease)
	}
	x.holds.Add(&h.held, c.trust)
	a.traced.Grant = locktrace.GrantMemory
	if c.except == unrenewed {
		c.except = ordinary
		c.askSoon(now)
	}
	c.reschedule()
	return nil
}

// nestInRedis takes one more hold for the owner, which has an id. The hold counts in its
// section from before the command is sent, so that no Unlock ends the section meanwhile. The
// lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) nestInRedis(x *section, h *Hold, byName bool) error {
	c := x.claim
	x.holds.Enter(h.held.Side)
	a.nested = h
	g, err := a.reenter(x)
	a.nested = nil
	x.holds.Leave(h.held.Side)
	if err != nil {
		x.undoNested()
		return err
	}
	c.confirmed(g.sent, a.lease, g.doubts)
	if a.opts.Lease > 0 {
		c.noHandOver = true
		h.fix(g.sent, a.opts.Lease)
	}
	if a.opts.AtLeast > 0 {
		c.noHandOver = true
		c.standAtLeast(&a.opts)
	}
	if x.token.Load() == 0 && g.Token > 0 {
		x.token.Store(g.Token)
	}
	end := never
	if c.kind.Shares {
		end = c.trust
	}
	x.holds.Add(&h.held, end)
	c.account.Keep(&h.held, a.op.ID)
	if h.held.Fixed == nil && byName {
		n := x.holds.NeedNested()
		n.Callers = append(n.Callers, holds.Caller{Hold: &h.held, Ctx: a.ctx})
	}
	c.except = ordinary
	c.renewAfter(g.sent)
	c.endSurplus() // of holds that were unlocked meanwhile by a caller that could not wait
	return nil
}

// reenter has Redis count one more hold for the owner of a section, in a command of the claim that
// no other one overlaps. The lock's mutex must be held; it is released meanwhile and held again at
// the end.
func (a *acquisition) reenter(x *section) (g answer, err error) {
	c := x.claim
	if err = a.awaitEarlier(c); err == nil {
		err = a.voidLate(c)
	}
	if err != nil {
		return g, err
	}
	if now := a.lock.s.now(); !x.isOpen(now) {
		c.expire(now)
		return g, x.endedErr()
	}
	a.prepareNested(c)
	g, err = a.askNested(x)
	c.expire(a.lock.s.now()) // it may have ended meanwhile, with the watchdog late to see it
	switch {
	case x.ctx.HasEnded(): // whatever Redis said
		err = x.endedErr()
	case err == nil && g.Status == notHeld:
		c.lose("it was gone when it was locked again", true)
		err = fmt.Errorf("%w: it was gone when it was locked again", ErrLost)
	case err == nil && g.Status == forGood:
		err = g.never(a.prim)
	case err == nil && g.Status != granted:
		err = ErrNotAcquired
	}
	switch {
	case err == nil:
	case a.attempts.MayHaveRun || a.attempts.MayCome:
		a.unresolvedNested(x)
	default:
		c.account.Ended(a.kind.Side, []string{a.op.ID})
	}
	c.answered()
	return g, err
}
