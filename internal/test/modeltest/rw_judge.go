package modeltest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"relock/rlock"
)

func (m *RW) Check(ended []*Call) {
	m.confirmed()
	for _, l := range m.lives { // also by a reader that learns of its loss by that very renewal
		m.mislead(l)
	}
	m.expire()
	for _, c := range ended {
		switch d := c.Data.(type) {
		case *forceCall:
			m.forced(c, d)
		case unlockCall:
			m.stirred = m.stirred || m.writes[d.h]
			m.loosen(d.h, d.again)
			m.unlocked(c, d)
			m.lastUnlocked(d.h.t)
		case extendCall:
			m.loosen(d.h, false)
			m.extended(c, d)
		case *rwCall:
			m.stirred = m.stirred || d.write
		}
	}
	// Of two calls of one owner in one process the one that was in the line came in first.
	slices.SortStableFunc(ended, func(a, b *Call) int { return inLine(b) - inLine(a) })
	for _, judge := range []func(*Call, *rwCall){m.refused, m.granted, m.upgraded} {
		for _, c := range ended {
			if d, ok := c.Data.(*rwCall); ok {
				judge(c, d)
			}
		}
	}
	m.noticed()
	m.look()
	for _, c := range ended {
		if d, ok := c.Data.(*stateCall); ok {
			m.stated(c, d)
		}
	}
	m.checkSections()
	m.checkLeases()
	m.checkMarks()
	m.checkWaiting()
	m.claims = slices.DeleteFunc(m.claims, func(t *claim) bool {
		inUse := func(h *hold) bool { return h.counted || !h.spent && !t.dead }
		return !slices.ContainsFunc(t.holds, inUse)
	})
	m.stirred, m.cleared, m.deleted, m.undone = false, false, false, nil
}

// lastUnlocked: what a lost owner may have left is released when all its holds are unlocked,
// unless its process cannot reach Redis just now.
func (m *RW) lastUnlocked(t *claim) {
	if t.over == rlock.ErrLost && !t.dead && !t.revived && m.calm() &&
		!slices.ContainsFunc(t.holds, func(h *hold) bool { return !h.spent }) {
		t.end(t.over)
	}
}

func inLine(c *Call) int {
	if d, ok := c.Data.(*rwCall); ok && d.joint > 0 {
		return 1
	}
	return 0
}

func (m *RW) extended(c *Call, d extendCall) {
	m.Mutex.extended(c, d)
	if l := m.lives[d.h.t.owner]; l != nil && c.Err == nil && !d.h.t.local {
		l.mayLast(d.h.until)
	}
}

func (m *RW) forced(c *Call, d *forceCall) {
	if found := len(m.seen.reads)+len(m.seen.writes) > 0; c.Err != nil || d.found != found {
		m.w.Failf("ForceUnlock returned %v, %v; it should have been %v", d.found, c.Err, found)
	}
	if !d.found {
		return
	}
	m.stirred, m.cleared = true, true
	m.dead = time.Time{}
	for _, l := range m.lives {
		m.endLife(l, time.Now())
		for _, t := range l.by {
			if m.calm() {
				t.notice = time.Now()
			}
		}
	}
}

// refused is a call that failed.
func (m *RW) refused(c *Call, d *rwCall) {
	notAcquired := errors.Is(c.Err, rlock.ErrNotAcquired)
	t := m.claimOf(c.Actor.Seat, d.owner)
	switch {
	case c.Err == nil:
	case c.Actor.Seat.Session == nil && errors.Is(c.Err, rlock.ErrClosed):
	case d.raced && errors.Is(c.Err, context.Canceled): // see upgraded
		m.undone = append(m.undone, d.owner)
	case d.ended && errors.Is(c.Err, context.Canceled) && !notAcquired:
	case c.Ctx.Err() != nil && !d.ended && !d.try && notAcquired && errors.Is(c.Err, context.Canceled):
	case errors.Is(c.Err, m.kind.Upgrade) && d.write: // see upgraded
	case d.try && notAcquired && (m.keptOut(d) || m.acquiring(c, d)):
	case d.wait > 0 && notAcquired && (time.Now().Equal(c.Began.Add(d.wait)) || m.leaving(c, d)):
	case errors.Is(c.Err, rlock.ErrLost) && t != nil && t.doomed && !d.named:
		t.lose()
	default:
		m.w.Failf("%s returned %v", c.Text, c.Err)
	}
}

// keptOut reports whether a call that does not wait had to be refused, by what Redis had
// when it began.
func (m *RW) keptOut(d *rwCall) bool {
	s, now := m.seen, time.Now()
	if d.owner != "" && (s.writes[d.owner] > 0 || s.reads[d.owner] > 0 && s.expiries[d.owner].After(now)) {
		return false // it comes in, or will be told that it never can
	}
	if !d.write {
		return len(s.writes) > 0 || s.closed(now)
	}
	return m.others(d.owner)
}

// closed reports whether there was a mark that is still live.
func (s *rwSeen) closed(now time.Time) bool {
	for _, until := range s.marks {
		if until.After(now) {
			return true
		}
	}
	return false
}

// acquiring reports whether another call of the same process waits for the lock in the
// name of the same owner.
func (m *RW) acquiring(c *Call, d *rwCall) bool {
	return slices.ContainsFunc(m.w.Waiting(), func(o *Call) bool {
		od, ok := o.Data.(*rwCall)
		return ok && o != c && o.Actor.Seat == c.Actor.Seat && d.owner != "" && od.owner == d.owner
	})
}

// freeSince returns since when the lock is free by what was seen, or when it will be.
func (m *RW) freeSince(s *rwSeen) time.Time {
	since := m.free.at
	if !m.free.now {
		for _, until := range s.obstacles(true) {
			since = latest(since, until)
		}
	}
	return since
}

// upgraded judges those who were told that they never can: their owner has the read side
// alone, be it only since this instant.
func (m *RW) upgraded(c *Call, d *rwCall) {
	if l := m.lives[d.owner]; l != nil && d.raced && c.Err != nil {
		// It was taken back, but may have moved the end before.
		l.mayLast(time.Now().Add(max(d.lease, m.w.Config.Lease)))
		l.shared = true
	}
	if !errors.Is(c.Err, m.kind.Upgrade) {
		return
	}
	already := m.seen.reads[d.owner] > 0 && m.seen.writes[d.owner] == 0
	after := false
	if l := m.lives[d.owner]; l != nil {
		reads, lost := m.counted(l, false)
		writes, _ := m.counted(l, true)
		after = reads+lost > 0 && writes == 0
	}
	t := m.claimOf(c.Actor.Seat, d.owner)
	local := t != nil && t.local // Redis was not asked
	if d.owner == "" || !already && !after && !local && !slices.Contains(m.undone, d.owner) {
		m.w.Failf("%s returned %v, and its owner does not have the read side alone", c.Text, c.Err)
	}
}

// granted is a call that got in.
func (m *RW) granted(c *Call, d *rwCall) {
	if c.Err != nil {
		return
	}
	owner, now := d.h.Owner(), time.Now()
	l, t := m.lives[owner], m.claimOf(c.Actor.Seat, owner)
	if t != nil && t.lostBy(d.named) {
		t.lose()
		t = nil
	}
	switch {
	case d.ended || c.Ctx.Err() != nil && !d.raced:
		m.w.Failf("%s got in with a context that had ended", c.Text)
	case d.owner != "" && owner != d.owner:
		m.w.Failf("%s got in as %s", c.Text, owner)
	case t != nil && t.local:
		m.nested(c, d, t)
		return
	case (l == nil || l.lapsed()) && !d.write && !m.stirred && m.seen.closed(now) && now.After(m.seen.gate) && !c.Began.Before(m.seen.gate) &&
		now.Sub(m.freeSince(&m.seen)) < time.Second:
		// A reader that waited when the gate was opened may come whenever its session asks. Of a lock that is free a
		// mark keeps the others out for a second: whichever writer left it may have died.
		m.w.Failf("%s got in, and a writer waits", c.Text)
	}
	m.excludes(c, d, owner)
	if l == nil && t != nil {
		m.w.Failf("%s got in anew, in a section whose lock is gone", c.Text)
	}
	if l == nil {
		l = &life{owner: owner, since: now, expires: now.Add(time.Hour)} // look knows better
		m.lives[owner] = l
		for _, t := range m.claims {
			t.revived = t.revived || t.doomed && t.over == nil && t.owner == owner && !t.dead
		}
		m.mislead(l) // a session that is told of the loss may ask at this very moment
	}
	if l.over {
		l.over, l.since = false, now
		l.unknown = 0
	}
	l.slack += time.Millisecond
	h := d.hold(c)
	if t == nil {
		t = &claim{seat: c.Actor.Seat, life: c.Actor.Seat.Life, owner: owner, ctx: c.Ctx, local: d.owner == "" && !d.write && d.lease == 0}
		if d.write && d.mayBeGranted() {
			t.granted = now
		}
		m.claims = append(m.claims, t)
	}
	h.t = t
	t.holds = append(t.holds, h)
	if !slices.Contains(l.by, t) {
		l.shared = l.shared || len(l.by) > 0
		l.by = append(l.by, t)
	}
	l.mayLast(now.Add(cmp.Or(d.lease, m.w.Config.Lease)))
	if d.write {
		m.writes[h] = true
	}
}

// hold returns the hold of a call that got in.
func (d *rwCall) hold(c *Call) *hold {
	h := &hold{Hold: d.h, ctx: c.Ctx, cancel: c.Cancel, section: d.in, own: d.lease > 0 && d.in.derived(), byName: d.named, counted: true}
	if d.lease > 0 {
		h.fixed, h.end, h.until = true, time.Now().Add(trusted(d.lease)), time.Now().Add(d.lease)
	}
	return h
}

// nested is a call that got in to a local claim: Redis was not asked, also where the lock is
// gone and the session does not know it yet.
func (m *RW) nested(c *Call, d *rwCall, t *claim) {
	h := d.hold(c)
	h.t, h.counted = t, !t.doomed
	t.holds = append(t.holds, h)
	if d.write {
		m.w.Failf("%s got in: an upgrade", c.Text)
	}
}
