package engine

import (
	"context"
	"fmt"

	"relock/internal/backoff"
	"relock/internal/idgen"
	"relock/internal/lockerr"
	"relock/internal/script"
	"relock/locktrace"
)

// nestNamed is a Lock of a named owner for which this session has a claim already. The lock's
// mutex must be held and is released.
func (a *acquisition) nestNamed(c *claim) (*Hold, context.Context, error) {
	l := a.lock
	if !a.wait && c.state == asking {
		l.unlock()
		return nil, nil, ErrNotAcquired // the owner itself waits for it
	}
	switch {
	case c.state == asking: // it waits, and this caller for the outcome
		if err := a.waitIdle(c); err != nil {
			return nil, nil, err
		}
		l.unlock()
		return nil, nil, errAgain
	case !c.sections.standing(l.s.now()):
		c.expire(l.s.now())
		l.unlock()
		return nil, nil, errAgain
	}
	return a.nest(c.sections, true)
}

// waitIdle waits until no command of the claim is under way. The lock's mutex must be held; it
// is held at the end if the error is nil.
func (a *acquisition) waitIdle(c *claim) error {
	if c.more == nil || !c.more.busy {
		return nil
	}
	l := a.lock
	nested := c.state == held // else the owner itself waits, for another one to release the lock
	l.unlock()
	ctx, cancel := a.bounded()
	defer cancel()
	l.mu.Lock()
	if !c.waitIdle(ctx) {
		if nested {
			a.tries.err = errEarlier
		}
		return a.ended()
	}
	return nil
}

// errEarlier is why a caller could not even ask.
var errEarlier = fmt.Errorf("%w: an earlier command of this owner has no answer yet", ErrUnavailable)

// nest is a Lock in a section of the lock; byName says that the caller came in under the owner's
// name, not through the section. The lock's mutex must be held and is released.
func (a *acquisition) nest(x *section, byName bool) (*Hold, context.Context, error) {
	l, c := a.lock, x.claim
	h := &Hold{section: x, side: uint8(a.prim.Kind().Side), began: l.s.now()}
	if l.state != lockOpen {
		l.unlock()
		return nil, nil, ErrClosed
	}
	var err error
	if c.prim.Kind().Shares && c.num != 0 && !c.bound {
		err = a.nestLocally(x, h)
	} else {
		err = a.nestInRedis(x, h, byName)
	}
	if err != nil {
		l.unlock()
		l.tryRetire()
		return nil, nil, err
	}
	a.traced.Nested, a.traced.Holds = true, int(x.live[0]+x.live[1])
	if a.lock.s.trace != nil {
		x.trace(h, a)
	}
	l.unlock()
	return h, h.ownContext(x.nestedContext(a.ctx)), nil
}

// nestLocally counts a hold in a section that shares its claim.
func (a *acquisition) nestLocally(x *section, h *Hold) error {
	c := x.claim
	if a.prim.Kind() != c.prim.Kind() {
		return grant{value: 1}.never(a.prim) // what the script says to a reader that would write
	}
	if a.opts.Lease > 0 {
		h.fix(h.began, a.opts.Lease)
	}
	x.add(h)
	a.traced.Grant = locktrace.GrantMemory
	if c.stopped {
		c.stopped, c.renewAt = false, h.began
	}
	c.reschedule()
	return nil
}

// nestInRedis takes one more hold for the owner, which has an id. The hold counts in its
// section from before the command is sent, so that no Unlock ends the section meanwhile. The
// lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) nestInRedis(x *section, h *Hold, byName bool) error {
	c, side := x.claim, a.prim.Kind().Side
	x.extra().entering[side]++
	if err := a.waitIdle(c); err != nil {
		a.lock.mu.Lock()
		x.more.entering[side]--
		a.lock.settleNested(x)
		return err
	}
	if err := a.voidLate(c); err != nil {
		x.more.entering[side]--
		a.lock.settleNested(x)
		return err
	}
	if !x.standing(a.lock.s.now()) {
		x.more.entering[side]--
		return x.endedErr()
	}
	id := a.prepareNested(c)
	g, err := a.reenter(x)
	c.expire(a.lock.s.now()) // it may have ended meanwhile, with the watchdog late to see it
	x.more.entering[side]--
	switch {
	case x.over(): // whatever Redis said
		err = x.endedErr()
	case err == nil && g.status == notHeld:
		c.lose("it was gone when it was locked again", true)
		err = fmt.Errorf("%w: it was gone when it was locked again", ErrLost)
	case err == nil && g.status == forGood:
		err = g.never(a.prim)
	case err == nil && g.status != granted:
		err = ErrNotAcquired
	}
	if err != nil {
		if !a.tries.unknown && !a.tries.mayCome {
			c.ended(side, []string{id})
		} else {
			c.bound, c.more.strays[side] = true, true
		}
		c.commandDone()
		a.lock.settleNested(x)
		return err
	}
	c.confirmed(g.sent, a.lease, g.doubts)
	h.began = g.sent
	if a.opts.Lease > 0 {
		c.bound = true
		h.fix(g.sent, a.opts.Lease)
	}
	if x.token == 0 && g.token > 0 {
		x.token = g.token
	}
	x.add(h)
	if c.num == 0 {
		c.more.holds[h] = id
	}
	if h.fixed == nil && byName {
		x.more.callers = append(x.more.callers, caller{h, a.ctx})
	}
	c.renewAfter(g.sent)
	c.stopped = false
	c.reschedule()
	c.commandDone()
	c.trim() // of what was unlocked meanwhile by a caller that could not wait
	return nil
}

// prepareNested notes in the account what is about to be sent, and returns the id of the hold.
func (a *acquisition) prepareNested(c *claim) (id string) {
	m, side := c.account(), a.prim.Kind().Side
	a.op = Op{Owner: c.ownerID(), N: a.n, ID: idgen.Request(), Lease: a.lease, ByIDs: true,
		Known: Known{Held: c.told(side), Other: c.told(1 - side)}, All: c.num != 0}
	if a.prim.Kind().Fenced && c.sections != nil && c.sections.token == 0 {
		a.op.Tokens, m.reserved = 1, 1
	}
	if m.prims[side] == nil && c.prim.Kind().Side != side {
		c.bound = true
		m.sides++
	}
	m.ids[side] = append(m.ids[side], a.op.ID)
	m.prims[side], m.prims[c.prim.Kind().Side] = a.prim, c.prim
	m.byIDs, m.busy = true, true
	return a.op.ID
}

// reenter sends the attempt until it is answered, or the caller's context or the section ends.
// The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) reenter(x *section) (g grant, err error) {
	l := a.lock
	s := l.s
	l.unlock()
	ctx, interrupt := a.timed()
	l.mu.Lock()
	x.extra().interrupt = interrupt
	gone := x.over()
	l.unlock()
	if gone {
		interrupt()
	}
	for {
		a.traced.Attempts++
		g, err = s.tryAcquire(ctx, a.prim, &a.op, a.trusted)
		x.claim.traceAttempt(g, err)
		a.noteTry(g, err)
		switch {
		case err == nil && a.ctx.Err() != nil:
			err = lockerr.NotAcquired(lockerr.OfContext(a.ctx), nil)
		case err == nil:
		case ctx.Err() != nil:
			err = a.ended()
		case script.Classify(err) == script.Refused || (!a.wait && a.stopsTrying(err)):
		case backoff.Pause(ctx, a.tries.failures) != nil:
			err = a.ended()
		default:
			continue
		}
		break
	}
	interrupt()
	l.mu.Lock()
	if !x.over() {
		x.more.interrupt = nil
	}
	return g, err
}

// settleNested ends what a nested Lock that failed may have left: holds beyond those that the
// section has, or the section itself if its other holds were unlocked meanwhile.
func (l *lock) settleNested(x *section) {
	c := x.claim
	if x.over() {
		x.settleLost()
		return
	}
	if x.held() > 0 {
		c.trim()
		return
	}
	if x.close(released) {
		l.later(x.cancel)
	}
	if c.state == held && c.sections == nil {
		c.end(c.overAt(l.s.now()), nil)
	}
}
