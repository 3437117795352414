package modeltest

import (
	"errors"
	"slices"
	"time"

	"relock/rlock"
)

// Gone: what a closed process held is released; what a killed one held stands until its
// lease is over.
func (m *Mutex) Gone(seat *Seat, killed bool) {
	for _, t := range m.claims {
		switch {
		case t.seat != seat || t.life != seat.Life || t.dead:
		case killed:
			t.dead = true
		case t.over == nil:
			t.end(rlock.ErrClosed)
		}
	}
	m.queueGone(seat, killed)
	m.freeIfEmpty()
}

// end: the claim is over, and Redis counts none of its holds any more.
func (t *claim) end(cause error) {
	t.over = cause
	for _, h := range t.holds {
		h.counted = false
	}
}

// lose: the claim is over, but its session cannot know what Redis still counts.
func (t *claim) lose() { t.over = rlock.ErrLost }

func (m *Mutex) lose(t *claim) {
	t.lose()
	m.learnt[t.seat] = time.Now()
}

// counted returns how many holds Redis must count, and how many more it may, which are
// lost but not taken back.
func (m *Mutex) counted() (must, may int) {
	for _, t := range m.by {
		for _, h := range t.holds {
			switch {
			case !h.counted:
			case t.over == nil:
				must++
			default:
				may++
			}
		}
	}
	return must, may
}

func (m *Mutex) freeIfEmpty() {
	if must, may := m.counted(); must+may == 0 && m.owner != "" {
		for _, t := range m.by {
			t.until = m.latest
		}
		m.endLife(time.Now(), true)
	}
}

// endLife: the key is gone since at. told says that this was published.
func (m *Mutex) endLife(at time.Time, told bool) {
	if !at.Equal(m.expires) {
		m.queue.jolt = time.Now()
	}
	m.scatter()
	for _, t := range m.claims {
		if !t.revived && !slices.Contains(m.by, t) {
			continue
		}
		for _, h := range t.holds {
			h.counted = false
		}
		t.notice, t.trust = at.Add(m.w.Config.Lease/3+time.Millisecond), m.expires
		if t.revived { // it may have been renewed just now
			t.trust = at.Add(m.w.Config.Lease)
		}
		t.doomed, t.revived = true, false
	}
	m.owner, m.since, m.told, m.by, m.latest = "", at, told, nil, time.Time{}
}

func (m *Mutex) Check(ended []*Call) {
	m.confirmed()
	m.expire()
	for _, c := range ended {
		if d, ok := c.Data.(*forceCall); ok {
			m.forced(c, d)
		}
	}
	for _, c := range ended {
		switch d := c.Data.(type) {
		case unlockCall:
			m.unlocked(c, d)
		case extendCall:
			m.extended(c, d)
		}
	}
	for _, failed := range []bool{true, false} {
		for _, c := range ended {
			if d, ok := c.Data.(*lockCall); ok && failed == (c.Err != nil) {
				if failed {
					m.refused(c, d, ended)
				} else {
					m.granted(c, d, ended)
				}
			}
		}
	}
	m.takenBack(ended)
	m.noticed()
	m.checkSections()
	m.checkRedis()
	m.checkWaiting()
	m.checkQueue(ended)
	m.checkLine()
	m.forgetHandOvers()
	m.claims = slices.DeleteFunc(m.claims, func(t *claim) bool {
		inUse := func(h *hold) bool { return h.counted || !h.spent && !t.dead }
		return !slices.ContainsFunc(t.holds, inUse)
	})
}

// expire ends a life that nobody renewed. All that it was for must know already.
func (m *Mutex) expire() {
	if m.owner == "" || time.Now().Before(m.expires) || slices.ContainsFunc(m.by, (*claim).renews) {
		return
	}
	if slices.ContainsFunc(m.claims, func(t *claim) bool { return t.revived && t.over == nil }) && m.w.Redis.HGet(m.kind.Key, m.owner) != "" {
		return // kept alive by a session that is mistaken in what it holds, though not in the owner
	}
	for _, t := range m.by {
		if t.over != nil || t.dead || t.revived && time.Now().Before(t.notice) {
			continue // (one that entered a later life by mistake learns that when it is renewed)
		}
		for _, h := range t.holds {
			if end := h.section.Ended(); !h.spent && (h.Remaining() > 0 || end.IsZero() || end.After(m.expires)) {
				m.w.Failf("the lease of %s is over, and its section ended at %v, with %v to go", m.owner, end, h.Remaining())
			}
		}
		m.lose(t)
	}
	m.endLife(m.expires, false)
}

// noticed ends claims whose end needs no message, or has come as one.
func (m *Mutex) noticed() {
	for _, t := range m.claims {
		if t.over != nil || t.dead {
			continue
		}
		trusted := slices.ContainsFunc(t.holds, func(h *hold) bool { return h.Remaining() > 0 })
		switch {
		case trusted && t.doomed && !t.revived && t.wanted() && time.Now().After(t.notice),
			trusted && t.doomed && !t.revived && time.Now().After(t.trust):
			m.w.Failf("%s has not noticed that its lock is gone", t.owner)
		case trusted && !t.live():
			m.w.Failf("%s trusts a lease that is over", t.owner)
		case trusted:
		case t.live() && !t.uncertain():
			m.w.Failf("%s was told that its lock is lost, and it is not", t.owner)
		default:
			m.lose(t)
		}
	}
}

func (m *Mutex) unlocked(c *Call, d unlockCall) {
	h, t := d.h, d.h.t
	lost, ok := errors.Is(c.Err, rlock.ErrLost), c.Err == nil
	switch {
	case d.again:
		ok = errors.Is(c.Err, rlock.ErrNotHeld)
	case t.over == rlock.ErrClosed:
		ok = errors.Is(c.Err, rlock.ErrClosed)
	case t.over == nil && t.doomed && m.wasHandedOver(t.owner):
		ok = ok && !h.ranOut() // Redis was not asked; the next section learns of it
		t.inVain = true
	case t.over == nil && !h.ranOut() && t.local && t.hasMore(h): // Redis was not asked
	case t.over != nil, h.ranOut(), t.doomed && !t.revived:
		ok = lost
	case t.revived:
		ok = ok || lost
	}
	if !ok {
		m.w.Failf("%s returned %v", c.Text, c.Err)
	}
	if d.again {
		return
	}
	m.spent = append(m.spent[max(0, len(m.spent)-9):], h)
	h.spent = true
	all := !slices.ContainsFunc(t.holds, func(h *hold) bool { return !h.spent })
	switch {
	case t.over == nil && lost && !h.ranOut() && t.live():
		h.counted = false
		m.lose(t)
	case t.over == nil:
		h.counted = false
		if t.doomed {
			m.learnt[t.seat] = time.Now() // its waiters may ask from now on
		}
		if !t.live() {
			t.end(rlock.ErrReleased)
		}
	case all && !t.revived: // lost, and what may stand is released
		t.end(t.over)
	}
	m.freeIfEmpty()
}

func (m *Mutex) extended(c *Call, d extendCall) {
	h, t := d.h, d.h.t
	lost, ok := errors.Is(c.Err, rlock.ErrLost), c.Err == nil
	switch {
	case !h.fixed:
		ok = errors.Is(c.Err, rlock.ErrArgument)
	case t.over == nil && !h.ranOut() && t.local: // Redis was not asked
	case t.over != nil, h.ranOut(), t.doomed && !t.revived:
		ok = lost
	case t.revived:
		ok = ok || lost
	}
	if !ok {
		m.w.Failf("%s returned %v", c.Text, c.Err)
	}
	switch {
	case c.Err == nil:
		h.end, h.until = time.Now().Add(trusted(d.d)), time.Now().Add(d.d)
		m.mayLast(h.until)
	case lost && t.over == nil && !h.ranOut():
		m.lose(t)
	}
}

func (m *Mutex) forced(c *Call, d *forceCall) {
	if c.Err != nil || d.found != (m.owner != "") {
		m.w.Failf("ForceUnlock returned %v, %v; the owner was %q", d.found, c.Err, m.owner)
	}
	if m.owner == "" {
		return
	}
	by := m.by
	m.endLife(time.Now(), true)
	for _, t := range by {
		if m.calm() {
			t.notice = time.Now()
		}
	}
}

// calm: nobody has been cut off lately, so that messages are heard.
func (m *Mutex) calm() bool { return m.w.Calm(m.w.Config.PollFloor) }

func (m *Mutex) mayLast(until time.Time) {
	if until.After(m.latest) {
		m.latest = until
	}
}
