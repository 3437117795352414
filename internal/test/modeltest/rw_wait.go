package modeltest

import (
	"slices"
	"time"
)

// checkWaiting: nobody waits for longer than he must.
func (m *RW) checkWaiting() {
	now, floor := time.Now(), m.w.Config.PollFloor+2*time.Millisecond
	calls, _ := m.waiting()
	for _, c := range calls {
		d := c.Data.(*rwCall)
		l := m.lives[d.owner]
		switch {
		case m.leaving(c, d):
		case c.Ctx.Err() != nil:
			m.w.Failf("%v: %s still waits, and was cancelled", c.Actor, c.Text)
		case d.wait > 0 && now.Sub(c.Began) >= d.wait:
			m.w.Failf("%v: %s still waits", c.Actor, c.Text)
		case m.claimOf(c.Actor.Seat, d.owner) != nil:
			m.w.Failf("%v: %s waits for itself", c.Actor, c.Text)
		case l != nil && !l.over && now.Sub(latest(l.since, c.Began)) > 2*floor:
			m.w.Failf("%v: %s waits, and its owner is in since %v", c.Actor, c.Text, l.since)
		case m.behindItself(c):
		case m.free.now && now.Sub(latest(m.free.at, c.Began)) > 4*floor+time.Second:
			m.w.Failf("%v: %s waits, and the lock is free since %v", c.Actor, c.Text, m.free.at)
		case m.inFront(c):
			m.checkFront(c, d)
		}
	}
}

// behindItself reports whether the session of a call believes that it has the write side: then
// none of its callers asks Redis, until a renewal tells the session that the lock is gone.
func (m *RW) behindItself(c *Call) bool {
	return slices.ContainsFunc(m.claims, func(t *claim) bool {
		return t.seat == c.Actor.Seat && t.doomed && t.over == nil && !t.dead &&
			slices.ContainsFunc(t.holds, func(h *hold) bool { return m.writes[h] && !h.spent })
	})
}

// leaving: a writer that leaves sees to it that his mark is gone. On a connection that was
// cut that takes him a moment.
func (m *RW) leaving(c *Call, d *rwCall) bool {
	now := time.Now()
	if d.wait > 0 && d.left.IsZero() {
		d.left = c.Began.Add(d.wait)
	}
	if c.Ctx.Err() != nil && (d.left.IsZero() || d.left.After(now)) {
		d.left = now
	}
	return d.write && !m.w.cut.IsZero() && !d.left.IsZero() && !now.Before(d.left) && now.Sub(d.left) <= longestLeave
}

// longestLeave is how long a writer that leaves waits for a confirmation at most.
const longestLeave = 100 * time.Millisecond

// longestCall is for how long a lock that is free is left to readers, and to writers that were called before: the last of
// the three processes of a world comes then.
const longestCall = 12 * time.Millisecond

// checkFront: whoever is in front of his session's line comes in as soon as he may. A
// reader may not while a writer's mark is live.
func (m *RW) checkFront(c *Call, d *rwCall) {
	way, what := m.open, "no writer has it or waits"
	if d.write {
		way, what = m.free, "it is free"
	}
	if !way.now {
		return
	}
	mistaken := slices.ContainsFunc(m.claims, func(t *claim) bool {
		return t.seat == c.Actor.Seat && t.doomed && t.over == nil
	})
	waited := time.Since(latest(way.at, c.Began))
	switch {
	case way.told && !mistaken && m.calm() && (!d.write || waited > longestCall):
		m.w.Failf("%v: %s waits, and %s: that was published", c.Actor, c.Text, what)
	case waited > m.w.Config.PollFloor+2*time.Millisecond:
		m.w.Failf("%v: %s waits, and %s since %v", c.Actor, c.Text, what, waited)
	}
}
