package rlock

import (
	"context"
	"fmt"
	"time"
)

// Where many goroutines of one session read at a time, Redis need not know each of them:
// they share one hold there, that of a host. The host is a tenure of an owner that nobody
// else has, and that no caller sees; its guests hold in memory, each a tenure with a
// context and an owner of its own. Guests trust the lock for as long as the host does, and
// are lost with it; the last of them that leaves releases it.
//
// Readers join for as long as Redis has said, a moment ago, that no writer waits. Later
// ones ask anew, and make another host if they may come in. A writer of the session that
// waits shortens the moment. So a writer waits for little longer than without: but those
// who come in that moment cost Redis nothing.
//
// As long as few read, each has a hold of its own in Redis, where it can be seen.

const (
	// shareTime is for how long a host takes readers in: as long as an outside writer is
	// kept waiting by that, at most.
	shareTime = 10 * time.Millisecond

	// shareAhead is the same for a writer of the session, who is known at once. That is not
	// nothing, since readers who come past him come for nothing, and writers that gather
	// meanwhile find each other in the line.
	shareAhead = time.Millisecond

	// shareFrom is how many of a session's owners read, each by itself, before another one
	// becomes a host, if nobody waits in line.
	shareFrom = 8
)

// A house is what a host has.
type house struct {
	guests    []*tenure
	openUntil time.Duration // readers may join
	lapsed    int           // how many guests linger
}

// mayShare reports whether a can be a guest: a new owner whose lease is renewed.
func (a *acquisition) mayShare() bool {
	return a.owner == nil && a.o.lease == 0 && a.s.cfg.HandOverLimit >= 0 && a.p.Traits().Shares
}

// takesIn reports whether t is a host that readers may join. Session.mu must be held.
func (t *tenure) takesIn(now time.Duration) bool {
	return t != nil && t.state == holding && now < t.house.openUntil && !t.doubtful &&
		t.trust-now >= t.s.trustIn(t.s.cfg.Lease)/2
}

// shared returns a host that a may join, or nil. Session.mu must be held.
func (a *acquisition) shared() *tenure {
	if !a.mayShare() {
		return nil
	}
	l := a.s.lines[lineKey{a.p.Channel(), a.p.Key()}]
	if l == nil || !l.host.takesIn(a.s.now()) {
		return nil
	}
	return l.host
}

// invite makes the attempt that follows that of a host, if there are enough to share it.
// Session.mu must be held.
func (a *acquisition) invite() {
	l := a.line
	if a.host != nil || a.sent || a.mayCome || !a.mayShare() {
		return
	}
	if l.host == nil && l.readers < shareFrom && l.front == l.back {
		return
	}
	a.host = a.s.newTenure(context.Background(), a.p, nil)
	a.s.pending[a.host] = struct{}{}
	a.op.Owner = a.host.owner.id
}

// openHouse makes the hold that was granted to a that of its host, with a the first guest,
// and takes in who waits. Session.mu must be held.
func (s *Session) openHouse(a *acquisition, g grant) *Hold {
	l, host := a.line, a.host
	s.displace(l)
	delete(s.pending, host)
	host.state, host.trust = holding, 0
	s.held[tenureKey{a.p.Key(), host.owner.id}] = host
	s.addHold(host, a, g)
	host.doubtful = host.doubtful || a.t.doubtful
	if host.doubtful {
		host.renewAt = s.now()
		s.reschedule(host)
	}
	l.refs++
	l.host, host.line = host, l
	host.house = &house{openUntil: g.sent + shareTime}
	h := s.join(a, host)
	for w := l.front; w != nil; {
		next := w.next
		b := w.a
		if b.p.Traits().Exclusive {
			host.house.openUntil = min(host.house.openUntil, s.now()+shareAhead)
		} else if b != a && b.idle(s.now()) && b.mayShare() && host.takesIn(s.now()) {
			if unused := l.unlink(w); unused != nil {
				s.afterUnlock(unused.Close)
			}
			s.join(b, host)
			b.handed = true
			w.signal()
		}
		w = next
	}
	l.callUp()
	return h
}

// join makes a a guest. Session.mu must be held.
func (s *Session) join(a *acquisition, host *tenure) *Hold {
	t := a.t
	host.askAgain()
	s.letIn(a, host.trust)
	pt := &t.parts[a.p.Part()] // Redis does not know of it
	pt.first, pt.ids, pt.byID, t.first.id = false, nil, false, ""
	t.host, t.guest = host, int32(len(host.house.guests))
	host.house.guests = append(host.house.guests, t)
	return &t.first
}

// askAgain has a host renewed that nobody wanted to be when it was due: somebody will.
// Session.mu must be held.
func (t *tenure) askAgain() {
	if !t.wanted() {
		t.renewAt = min(t.renewAt, t.s.now())
		t.s.reschedule(t)
	}
}

// leaveHost ends a stay, and reports whether the host is to be released: nobody is left.
// Session.mu must be held.
func (t *tenure) leaveHost() (last bool) {
	host := t.host
	if host == nil || t.guest < 0 {
		return false
	}
	in := host.house
	n := len(in.guests) - 1
	in.guests[t.guest] = in.guests[n]
	in.guests[t.guest].guest = t.guest
	in.guests[n] = nil
	in.guests = in.guests[:n]
	t.guest = -1
	if n == 0 && host.line != nil && host.line.host == host {
		host.line.host = nil // nobody else joins
	}
	if t.wasLost {
		t.lingers = true
		host.house.lapsed++
	}
	return n == 0 && host.empty()
}

// empty reports whether t is a host that is held for nobody. Session.mu must be held.
func (t *tenure) empty() bool {
	return t.house != nil && t.state == holding && len(t.house.guests) == 0 && !t.first.done
}

// releaseHost ends the hold of a host that is empty, in the background. Others, who know
// the host's name from Hold.Owner, may have holds by it too. Session.mu must be held.
func (s *Session) releaseHost(host *tenure) {
	h := &host.first
	h.done = true
	h.drop()
	switch {
	case host.live() == 0 && !host.busy:
		s.releaseBehind(host, s.over(host))
	case host.live() == 0: // whoever has the turn releases, see passTurn
		s.forgetDue(host)
		host.cancelAll(ErrReleased)
	default:
		host.untidy = true
		host.unsent = append(host.unsent, h)
		if !host.busy {
			host.releaseUnsent()
		}
	}
}

// releaseLater is releaseHost after the last guest has lapsed: that one may just be about
// to notice. It has the time that any reader has, from when its section ended until Redis
// may let a writer in, or until it is unlocked. Session.mu must be held.
func (s *Session) releaseLater(host *tenure) {
	if host.live() > 1 || host.busy {
		s.releaseHost(host)
		return
	}
	host.parts[host.first.part].life++ // no renewal that is under way makes that longer
	host.trust, host.renewAt = s.now()+s.cfg.Lease-s.trustIn(s.cfg.Lease), never
	host.cancel(ErrLost)
	s.reschedule(host)
}

// lapsedOut notes that a guest that was lost is unlocked. Session.mu must be held.
func (t *tenure) lapsedOut() {
	if t.live() > 0 || !t.lingers {
		return
	}
	t.lingers = false
	t.host.house.lapsed--
	if t.host.house.lapsed == 0 && t.host.empty() && !t.s.closed {
		t.s.releaseHost(t.host)
	}
}

// lapse ends what a host has been held for, when it can be trusted no longer. Session.mu
// must be held.
func (t *tenure) lapse() {
	if len(t.house.guests) == 0 {
		t.s.releaseHost(t) // see releaseLater
		return
	}
	for len(t.house.guests) > 0 {
		t.house.guests[0].lose("no renewal was confirmed before the end of the lease")
	}
}

// wanted reports whether somebody's context wants the lock to be renewed. Session.mu must be
// held.
func (t *tenure) wanted() bool {
	if t.house == nil || len(t.house.guests) == 0 || t.live() > 1 {
		return t.Err() == nil
	}
	for _, g := range t.house.guests {
		if g.keptByHost() {
			return true
		}
	}
	return false
}

// keptByHost: a guest is trusted for longer with each renewal of the host, but for those
// whose context has ended and who have no fixed lease either.
func (t *tenure) keptByHost() bool { return t.Err() == nil || len(t.fixed) > 0 }

// renewGuests passes on what a renewal of the host has earned. Session.mu must be held.
func (s *Session) renewGuests(host *tenure) {
	if host.house == nil {
		return
	}
	for _, g := range host.house.guests {
		if g.keptByHost() {
			g.trust = max(g.trust, host.trust)
			s.reschedule(g)
		}
	}
}

// unlockGuest is the Unlock of a hold in memory. Session.mu must be held and is released.
func (s *Session) unlockGuest(h *Hold) error {
	t := h.t
	if !t.stands() {
		err := s.endedErr(t)
		s.abandon(t, h)
		s.unlock()
		return err
	}
	var err error
	if h.ranOut {
		err = ErrLost
	}
	h.drop()
	if t.live() > 0 {
		s.reschedule(t)
		s.unlock()
		return err
	}
	t.cancelAll(ErrReleased)
	t.state = ended
	last := t.leaveHost()
	s.forget(t)
	if !last {
		s.unlock()
		return err
	}
	t.host.first.done = true
	if e := s.release(&t.host.first); e != nil {
		err = e
	}
	return err
}

// stands reports whether a guest holds still. Redis is not asked; but what the watchdog is
// late to see, after a pause of the process, must be seen here. Session.mu must be held.
func (t *tenure) stands() bool {
	t.s.look(t, t.s.now())
	t.s.reschedule(t)
	return t.state == holding
}

// nestGuest is a Lock by an owner that is a guest: it happens in memory too. Session.mu must
// be held and is released.
func (a *acquisition) nestGuest(t *tenure) (context.Context, *Hold, error) {
	s := a.s
	if s.closed {
		s.unlock()
		return nil, nil, ErrClosed
	}
	if !t.stands() {
		s.unlock()
		return nil, nil, fmt.Errorf("%w: its lease was over when it was locked again", ErrLost)
	}
	if uint8(a.p.Part()) != t.first.part {
		s.unlock()
		// What the script would say to a reader that wants to become a writer.
		return nil, nil, grant{status: forGood, value: 1}.never(a.p)
	}
	t.host.askAgain()
	now := s.now()
	h := &Hold{t: t, part: uint8(a.p.Part()), began: now, auto: a.o.lease == 0}
	pt := &t.parts[h.part]
	pt.live++
	if h.auto {
		pt.auto++
	} else {
		h.until, h.end = now+a.o.lease, now+s.trustIn(a.o.lease)
		t.fixed = append(t.fixed, h)
	}
	s.reschedule(t)
	section := h.ownContext(t.nestedContext(a.caller))
	holds := t.live()
	s.unlock()
	s.cfg.Trace.acquired(a.p.Name(), t.owner.id, holds, s.now()-a.start)
	return section, h, nil
}
