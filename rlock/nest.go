package rlock

import (
	"context"
	"fmt"
	"time"

	"relock/internal/idgen"
)

// nest is a Lock by an owner that holds the lock already, with the tenure t.
// Session.mu must be held and is released.
func (a *acquisition) nest(t *tenure) (context.Context, *Hold, error) {
	s := a.s
	if t.host != nil {
		return a.nestGuest(t)
	}
	a.t = t
	t.busy = true
	side := a.p.Part()
	a.op = Op{
		Owner: t.owner.id, ID: idgen.Request(), Lease: a.lease(), Draw: t.token == 0,
		Holds: t.parts[side].told(), Other: t.parts[1-side].told(),
	}
	// What ends the tenure, Close above all, ends this too; but not the end of the context
	// that the tenure began with: another may have been given here.
	ctx, interrupt := context.WithCancel(a.caller)
	defer interrupt()
	t.interrupt = interrupt
	s.unlock()

	ctx, cancel := a.bounded(ctx)
	defer cancel()
	g, err := a.reenter(ctx)

	s.mu.Lock()
	t.interrupt = nil
	switch {
	case s.closed:
		err = ErrClosed
	case t.state == ended:
		err = s.endedErr(t) // whatever Redis said, the tenure is over
	case err == nil && g.status == lost:
		t.lose("it was gone when it was locked again")
		err = fmt.Errorf("%w: it was gone when it was locked again", ErrLost)
	case err == nil && g.status == forGood:
		err = g.never(a.p)
	case err == nil && g.status != granted:
		err = ErrNotAcquired
	case err == nil && a.caller.Err() != nil:
		err = notAcquired(ctxError(a.caller), nil)
	}
	if err != nil {
		a.takeBack()
		s.unlock()
		return nil, nil, err
	}
	h := s.addHold(t, a, g)
	section := h.ownContext(t.nestedContext(a.caller))
	holds := t.live()
	t.passTurn()
	s.unlock()
	s.cfg.Trace.acquired(a.p.Name(), t.owner.id, holds, s.now()-a.start)
	return section, h, nil
}

// reenter sends the attempt until it is answered or ctx ends.
func (a *acquisition) reenter(ctx context.Context) (grant, error) {
	for {
		g, err := a.attempt(ctx)
		switch {
		case err == nil:
			return g, nil
		case ctx.Err() != nil:
			return g, a.ended(ctx)
		case classify(err) == refused || (!a.mayWait && a.giveUp(err)):
			return g, err
		}
		if pause(ctx, a.failures) != nil {
			return g, a.ended(ctx)
		}
	}
}

// takeBack ends a failed nested Lock: if it may have been granted, that hold is ended
// in the background, by its id, whatever else happens. Session.mu must be held.
func (a *acquisition) takeBack() {
	if a.sent {
		a.t.untidy = true
		a.s.undo(undoing{cmd: a.undoCommand(), name: a.p.Name(), until: a.lastSent + a.op.Lease})
	}
	a.t.passTurn()
}

// admit makes a tenure of a granted outermost Lock. Session.mu must be held.
func (s *Session) admit(a *acquisition, g grant) *Hold {
	t := a.t
	if a.host != nil {
		return s.openHouse(a, g)
	}
	t.state = holding
	t.trust = 0
	s.held[tenureKey{a.p.Key(), t.owner.id}] = t
	if a.line != nil {
		s.admitFromLine(a)
	}
	return s.addHold(t, a, g)
}

// admitFromLine makes the new tenure the line's holder. Session.mu must be held.
func (s *Session) admitFromLine(a *acquisition) {
	l, t := a.line, a.t
	s.displace(l)
	tr := a.p.Traits()
	if tr.Shares {
		l.refs++
		l.readers++
		t.line, t.reads = l, true
	}
	if tr.Exclusive {
		if l.host != nil {
			l.host.lose("another owner was let in")
		}
		l.refs++
		l.holder, t.line = t, l
		l.look = false
		l.lookAt = s.now() + s.cfg.PollFloor
		l.run.begin(s.now())
	}
}

// displace ends the part that an exclusive holder has in a line in which Redis has let
// somebody else in. Session.mu must be held.
func (s *Session) displace(l *line) {
	switch {
	case l.holder == nil:
	case !l.holder.excludes():
		l.holder.vacate(false) // it has just released, or downgraded, and its answer is on the way
	default:
		l.holder.lose("another owner was let in")
	}
}

// addHold counts one more hold. Session.mu must be held.
func (s *Session) addHold(t *tenure, a *acquisition, g grant) *Hold {
	h := &t.first
	if h.t != nil {
		h = new(Hold)
	}
	*h = Hold{t: t, part: uint8(a.p.Part()), began: g.sent, auto: a.o.lease == 0, token: g.token, id: a.op.ID}
	if g.token != 0 {
		t.token = g.token
	}
	pt := &t.parts[h.part]
	pt.prim = a.p
	if h.id != "" {
		pt.ids = append(pt.ids, h.id)
		pt.byID = true
	} else {
		pt.first = true
	}
	if pt.live == 0 {
		pt.life++
	}
	pt.live++
	lease := a.op.Lease
	if g.claim > 0 {
		lease, t.renewAt = g.claim, s.now()
	}
	t.trust = max(t.trust, g.sent+s.trustIn(lease))
	if h.auto {
		pt.auto++
	} else {
		h.until, h.end = g.sent+a.o.lease, g.sent+s.trustIn(a.o.lease)
		t.fixed = append(t.fixed, h)
	}
	t.renewAt = min(t.renewAt, s.nextLook(t, g.sent))
	s.reschedule(t)
	return h
}

// pause sleeps before the n-th retry: 10 ms, doubling to half a second, jittered.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(jitter(min(10*time.Millisecond<<min(n, 10), 500*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
