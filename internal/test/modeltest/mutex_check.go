package modeltest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"relock/rlock"
)

// checkSections compares the model with what the callers were told.
func (m *Mutex) checkSections() {
	for _, t := range m.claims {
		for _, h := range t.holds {
			if t.dead || h.spent {
				continue
			}
			open, cause := h.section.Err() == nil, context.Cause(h.section)
			over := t.over
			if over == nil && h.own && h.ranOut() {
				over = rlock.ErrLost
			}
			switch {
			case open && over != nil:
				m.w.Failf("the section of %s is open, and should have ended: %v", t.owner, over)
			case open && h.ctx.Err() != nil:
				m.w.Failf("the section of %s is open, and its context has ended", t.owner)
			case open && t.owner != m.owner && !t.doomed:
				m.w.Failf("%s is inside, and %q is the owner", t.owner, m.owner)
			case !open && over == nil && h.ctx.Err() == nil && !t.uncertain():
				m.w.Failf("the section of %s has ended: %v", t.owner, cause)
			case !open && over != nil && h.ctx.Err() == nil && !errors.Is(cause, over) && !errors.Is(cause, rlock.ErrLost):
				m.w.Failf("the section of %s ended with cause %v, want %v", t.owner, cause, over)
			}
		}
	}
}

// checkRedis compares the model with what Redis has.
func (m *Mutex) checkRedis() {
	must, may := m.counted()
	owners, _ := m.w.Redis.HKeys(m.kind.Key)
	if len(owners) == 0 && must == 0 {
		if m.owner != "" { // only what was lost was left, and has been taken back
			m.endLife(time.Now(), false)
		}
		return
	}
	if len(owners) != 1 || owners[0] != m.owner {
		m.w.Failf("Redis has the owners %q, want %q", owners, m.owner)
		return
	}
	if n, err := strconv.Atoi(m.w.Redis.HGet(m.kind.Key, m.owner)); err != nil || n < must || n > must+may {
		m.w.Failf("Redis counts %d holds of %s, want %d, and at most %d lost ones", n, m.owner, must, may)
	}
	m.checkLease()
}

// checkLease compares the model with the TTL, and notes it.
func (m *Mutex) checkLease() {
	now, ttl := time.Now(), m.w.Redis.TTL(m.kind.Key)
	m.expires = now.Add(ttl)
	for _, t := range m.claims {
		if t.revived && t.over == nil && t.owner == m.owner { // it renews what is not its own
			m.shared = true
			m.mayLast(now.Add(m.w.Config.Lease))
		}
	}
	var fixed time.Time // the end of the longest, if that is all there is
	auto := m.shared
	for _, t := range m.by {
		if t.renews() {
			m.mayLast(now.Add(m.w.Config.Lease))
			if ttl < trusted(m.w.Config.Lease)/2 && !m.unconfirmed(t, ttl) {
				m.w.Failf("%s is renewed, and has %v to live", m.owner, ttl)
			}
		}
		for _, h := range t.holds {
			switch ended := h.ended.Load(); {
			case t.over != nil || t.dead || h.spent || h.fixed: // it wants no renewals, or cannot send them
			case ended == nil:
				m.mayLast(now.Add(m.w.Config.Lease))
			default:
				m.mayLast(ended.Add(m.w.Config.Lease)) // it was renewed until then
			}
			if t.local && h.ranOut() && h.counted && !h.spent && !t.dead {
				m.mayLast(h.end.Add(m.w.Config.Lease)) // it was renewed until then
			}
			auto = auto || h.counted && (!h.fixed || t.local)
			if h.counted && h.until.After(fixed) {
				fixed = h.until
			}
			// A script that reads a TTL and sets it again loses the part of a millisecond.
			if t.over == nil && h.counted && h.fixed && !h.ranOut() && m.expires.Add(m.slack+time.Millisecond).Before(h.until) {
				m.w.Failf("the lease of %s ends in %v, and it asked for %v", m.owner, ttl, h.until.Sub(now))
			}
		}
	}
	latest := m.latest
	if !auto {
		latest = fixed
	}
	if m.expires.After(latest.Add(time.Millisecond)) { // leases are rounded up
		m.w.Failf("the lease of %s ends in %v, and nobody asks for more than %v", m.owner, ttl, latest.Sub(now))
	}
}

// yields is for how long, at most, a session leaves a lock to others that its own goroutines
// had one after the other.
const yields = 11 * time.Millisecond

// checkWaiting: no call waits for longer than it must.
func (m *Mutex) checkWaiting() {
	now, floor := time.Now(), m.floor()+2*time.Millisecond
	for _, c := range m.w.Waiting() {
		d, ok := c.Data.(*lockCall)
		if !ok {
			continue
		}
		since := m.since
		if c.Began.After(since) {
			since = c.Began
		}
		if at := m.learnt[c.Actor.Seat]; at.After(since) {
			since = at
		}
		waited := now.Sub(since)
		mistaken := slices.ContainsFunc(m.claims, func(t *claim) bool {
			return t.seat == c.Actor.Seat && t.doomed && t.over == nil
		})
		switch {
		case m.leaving(d):
		case c.Ctx.Err() != nil:
			m.w.Failf("%v: %s still waits, and was cancelled", c.Actor, c.Text)
		case d.wait > 0 && now.Sub(c.Began) >= d.wait:
			m.w.Failf("%v: %s still waits", c.Actor, c.Text)
		case mistaken: // the session asks nobody while it thinks that it has the lock
		case m.owner == "" && m.told && m.calm() && m.queueCalm() && waited > yields:
			m.w.Failf("%v: %s waits, and the lock was released", c.Actor, c.Text)
		case m.owner == "" && waited > floor, m.owner == d.owner && waited > floor:
			m.w.Failf("%v: %s waits although nobody else has held the lock for %v", c.Actor, c.Text, waited)
		}
	}
}
