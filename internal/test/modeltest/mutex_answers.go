package modeltest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"relock/rlock"
)

// refused is a Lock or TryLock that failed.
func (m *Mutex) refused(c *Call, d *lockCall, ended []*Call) {
	notAcquired := errors.Is(c.Err, rlock.ErrNotAcquired)
	now := time.Now()
	t := m.claimOf(c.Actor.Seat, d.owner)
	switch {
	case c.Actor.Seat.Session == nil && errors.Is(c.Err, rlock.ErrClosed):
	case d.raced && errors.Is(c.Err, context.Canceled):
		d.undone = true
	case d.ended && errors.Is(c.Err, context.Canceled) && !notAcquired:
	case c.Ctx.Err() != nil && !d.ended && !d.try && notAcquired && errors.Is(c.Err, context.Canceled):
	case d.try && notAcquired && m.kind.Fair && m.owner == "" && (m.letIn(ended) || m.gathered(c)):
	case d.try && notAcquired && (m.owner != "" && m.owner != d.owner || m.entering(c, d)):
	case d.wait > 0 && notAcquired && now.Equal(c.Began.Add(d.wait)):
		d.undone = true // its run may have gathered until this instant, and have been sent in it
	case notAcquired && t != nil && !t.wanted():
		// rlock does not nest in a claim whose outermost context has ended, also not with
		// a context that lives; what it asked for then is undone, but for the TTL.
		d.undone = true
	case errors.Is(c.Err, rlock.ErrLost) && t != nil && t.doomed && !d.named:
		m.lose(t)
	default:
		m.w.Failf("%s returned %v; the owner was %q", c.Text, c.Err, m.owner)
	}
}

// takenBack: an attempt that may have been granted was taken back. Where its owner had the lock by
// another hold, it may have moved the TTL, and Redis does not know how long the other hold needs that.
// It is called when the grants of this instant are known: the other hold may be one of them.
func (m *Mutex) takenBack(ended []*Call) {
	for _, c := range ended {
		if d, ok := c.Data.(*lockCall); ok && d.undone && d.owner != "" && d.owner == m.owner {
			m.mayLast(time.Now().Add(cmp.Or(d.lease, m.w.Config.Lease)))
			m.shared = true
		}
	}
}

// entering reports whether another call of the same process waits for the lock in the
// name of the same owner.
func (m *Mutex) entering(c *Call, d *lockCall) bool {
	return slices.ContainsFunc(m.w.Waiting(), func(o *Call) bool {
		od, ok := o.Data.(*lockCall)
		return ok && o != c && o.Actor.Seat == c.Actor.Seat && d.owner != "" && od.owner == d.owner
	})
}

// granted is a Lock or TryLock that got in.
func (m *Mutex) granted(c *Call, d *lockCall, ended []*Call) {
	owner, now, seat := d.h.Owner(), time.Now(), c.Actor.Seat
	t := m.joined(seat, owner, d.named)
	var from *claim
	if t == nil {
		from = m.handedFrom(owner)
	}
	if from != nil && from.inVain {
		m.grantedInVain(c, d, from)
		return
	}
	if must, _ := m.counted(); must == 0 && m.owner != "" && m.owner != owner {
		m.endLife(now, true) // only what was lost was left, and has been taken back
	}
	switch {
	case d.ended || c.Ctx.Err() != nil && !d.raced:
		m.w.Failf("%s got in with a context that had ended", c.Text)
	case m.owner != "" && m.owner != owner:
		m.w.Failf("%s got in while %s held it", c.Text, m.owner)
	case d.owner != "" && owner != d.owner:
		m.w.Failf("%s got in as %s", c.Text, owner)
	}
	enters := m.owner == ""
	m.slack += time.Millisecond
	// Who enters a later life by mistake keeps the token of the life that it knows.
	stale := t != nil && t.doomed
	if token := d.h.Token(); m.kind.Fenced && !stale && (enters && token <= m.token || !enters && token != m.token) {
		m.w.Failf("%s drew token %d after %d", c.Text, token, m.token)
	}
	m.token = max(m.token, d.h.Token())
	if enters {
		m.checkOrder(c, d, ended)
		m.owner, m.since, m.slack = owner, now, 0
		if from != nil { // the key stands on, with its TTL
			m.mayLast(from.until)
		}
		for _, t := range m.claims {
			t.revived = t.revived || t.doomed && t.over == nil && t.owner == owner && !t.dead
		}
	}
	h := &hold{Hold: d.h, ctx: c.Ctx, cancel: c.Cancel, section: d.in, own: d.lease > 0 && d.in.derived(), byName: d.named, counted: true}
	if t == nil {
		t = &claim{seat: seat, life: seat.Life, owner: owner, ctx: c.Ctx}
		if enters && from == nil && d.mayBeGranted() {
			t.granted = now
		}
		m.claims = append(m.claims, t)
	}
	h.t = t
	t.holds = append(t.holds, h.watched())
	if !slices.Contains(m.by, t) {
		m.shared = len(m.by) > 0
		m.by = append(m.by, t)
	}
	lease := m.w.Config.Lease
	if d.lease > 0 {
		h.fixed, h.end, h.until = true, now.Add(trusted(d.lease)), now.Add(d.lease)
		lease = d.lease
	}
	m.mayLast(now.Add(lease))
}
