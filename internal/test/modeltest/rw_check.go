package modeltest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"relock/internal/waiting"
	"relock/rlock"
)

// checkSections compares the model with what the callers were told.
func (m *RW) checkSections() {
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
			l := m.lives[t.owner]
			switch {
			case open && over != nil:
				m.w.Failf("the section of %s is open, and should have ended: %v", t.owner, over)
			case open && h.ctx.Err() != nil:
				m.w.Failf("the section of %s is open, and its context has ended", t.owner)
			case open && !t.doomed && (l == nil || l.over):
				m.w.Failf("%s is inside, and is not one of the owners", t.owner)
			case !open && over == nil && h.ctx.Err() == nil && !t.uncertain():
				m.w.Failf("the section of %s has ended: %v", t.owner, cause)
			case !open && over != nil && h.ctx.Err() == nil && !errors.Is(cause, over) && !errors.Is(cause, rlock.ErrLost):
				m.w.Failf("the section of %s ended with cause %v, want %v", t.owner, cause, over)
			}
		}
	}
}

// checkLeases compares the model with the ends of the owners' leases.
func (m *RW) checkLeases() {
	last := time.Time{}
	for _, l := range m.lives {
		if l.expires.After(last) {
			last = l.expires
		}
		if l.over {
			continue
		}
		m.mislead(l)
		m.checkLease(l)
		m.checkTimeouts(l)
		if m.seen.ends.Add(l.slack + time.Millisecond).Before(l.expires) {
			m.w.Failf("the lock ends %v before the lease of %s", l.expires.Sub(m.seen.ends), l.owner)
		}
	}
	if m.seen.ends.After(last.Add(2*time.Millisecond)) && len(m.lives) > 0 {
		m.w.Failf("the lock ends %v after the last of its leases", m.seen.ends.Sub(last))
	}
}

// unconfirmed reports whether a writer has come in by a grant and need not be confirmed yet: see Mutex.unconfirmed.
func (m *RW) unconfirmed(t *claim, left time.Duration) bool {
	age := time.Since(t.granted)
	return !t.granted.IsZero() && age < waiting.ConfirmAfter && left >= min(waiting.GrantLease, m.w.Config.Lease)-age-time.Millisecond &&
		!slices.ContainsFunc(m.w.Waiting(), func(c *Call) bool {
			d, ok := c.Data.(*rwCall)
			return ok && d.write && c.Actor.Seat == t.seat
		})
}

// awaited reports whether others of a claim's process wait for the lock.
func (m *RW) awaited(t *claim) bool {
	return slices.ContainsFunc(m.w.Waiting(), func(c *Call) bool {
		_, ok := c.Data.(*rwCall)
		return ok && c.Actor.Seat == t.seat
	})
}

// confirmed notes that what was granted so long ago was confirmed: see Mutex.confirmed.
func (m *RW) confirmed() {
	for _, l := range m.lives {
		for _, t := range l.by {
			now, at := time.Now(), t.granted.Add(waiting.ConfirmAfter)
			if t.granted.IsZero() || t.confirmed || t.over != nil || t.dead {
				continue
			}
			if now.Before(at) {
				if m.awaited(t) {
					l.mayLast(now.Add(m.w.Config.Lease))
				}
				continue
			}
			t.confirmed = true
			l.mayLast(at.Add(m.w.Config.Lease))
			if m.w.Redis.HGet(m.kind.Key, l.owner+":write") != "" {
				l.expires = time.Now().Add(m.w.Redis.TTL(m.kind.Key))
			}
		}
	}
}

// checkLease compares one owner's.
func (m *RW) checkLease(l *life) {
	now, left := time.Now(), time.Until(l.expires)
	var fixed time.Time // the end of the longest, if that is all there is
	auto := l.shared || l.loose
	for _, t := range l.by {
		if t.renews() {
			l.mayLast(now.Add(m.w.Config.Lease))
			if left < m.w.Config.Lease/2 && !m.unconfirmed(t, left) {
				m.w.Failf("%s is renewed, and has %v to live", l.owner, left)
			}
		}
		for _, h := range t.holds {
			if t.local && h.ranOut() && h.counted && !h.spent && !t.dead {
				l.mayLast(h.end.Add(m.w.Config.Lease)) // it was renewed until then
			}
			auto = auto || h.counted && (!h.fixed || t.local)
			if r := h.Remaining(); t.over == nil && !t.dead && !t.doomed && r > left {
				m.w.Failf("%s trusts its lease for %v, and it ends in %v", l.owner, r, left)
			}
			if h.counted && h.until.After(fixed) {
				fixed = h.until
			}
			if t.over == nil && h.counted && h.fixed && !t.local && !h.ranOut() && l.expires.Add(l.slack+time.Millisecond).Before(h.until) {
				m.w.Failf("the lease of %s ends in %v, and it asked for %v", l.owner, left, h.until.Sub(now))
			}
		}
	}
	latest := l.latest
	if !auto {
		latest = fixed
	}
	// Leases are rounded up: as the end of a reader, as the lock's TTL, and in a downgrade.
	if l.expires.After(latest.Add(3 * time.Millisecond)) {
		m.w.Failf("the lease of %s ends in %v, and nobody asks for more than %v", l.owner, left, latest.Sub(now))
	}
}

// checkTimeouts: Redisson's readers and writers find a reader by its timeout keys.
func (m *RW) checkTimeouts(l *life) {
	if m.seen.mode != "read" {
		return
	}
	now, most := time.Now(), time.Duration(0)
	for i := 1; i <= m.seen.reads[l.owner]; i++ {
		most = max(most, m.w.Redis.TTL(m.kind.Timeout+l.owner+":rwlock_timeout:"+strconv.Itoa(i)))
	}
	reads, _ := m.counted(l, false)
	if reads > 0 && now.Add(most+l.slack+time.Millisecond).Before(l.expires) {
		m.w.Failf("the timeout keys of %s end in %v, its lease in %v", l.owner, most, l.expires.Sub(now))
	}
}

// stated compares State with what Redis has.
func (m *RW) stated(c *Call, d *stateCall) {
	want := map[string]int{}
	for o, n := range m.seen.reads {
		if until, ok := m.seen.expiries[o]; !ok || until.After(time.Now()) {
			want[o] += n
		}
	}
	for o, n := range m.seen.writes {
		want[o] += n
	}
	mode := m.seen.mode
	if len(want) == 0 {
		mode = ""
	}
	if c.Err != nil || d.mode != mode || !maps.Equal(d.owners, want) {
		m.w.Failf("State returned %q, %v, %v; want %q, %v", d.mode, d.owners, c.Err, mode, want)
	}
}
