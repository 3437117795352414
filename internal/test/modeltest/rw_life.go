package modeltest

import (
	"slices"
	"time"
)

// life is an owner's stay in the lock: from when it comes in until Redis has nothing of
// it any more.
type life struct {
	owner   string
	since   time.Time
	expires time.Time     // as Redis said last
	latest  time.Time     // the latest end that anybody asked for
	slack   time.Duration // see Mutex.slack
	shared  bool          // more than one claim had holds in it
	loose   bool          // its end may be later than what is left of it deserves
	over    bool          // its lease is; its field stays until somebody clears it away
	by      []*claim

	// unknown are holds whose lease is over, and that Redis may still count. A renewal for
	// another claim that is mistaken (see misled) brings them back to life.
	unknown int
}

// counted is Mutex.counted for the holds of one side in one life. All that a local claim has
// are one hold in Redis.
func (m *RW) counted(l *life, write bool) (must, may int) {
	for _, t := range l.by {
		n := 0
		for _, h := range t.holds {
			if h.counted && m.writes[h] == write && !(t.local && n > 0) {
				n++
			}
		}
		if t.over == nil {
			must += n
		} else {
			may += n
		}
	}
	if !write {
		may += l.unknown
	}
	return must, may
}

// loosen: in a write lock the script of a reader does not bring the end of the lock
// closer, and that of a writer not the reader's own.
func (m *RW) loosen(h *hold, again bool) {
	l := m.lives[h.t.owner]
	if l == nil || again {
		return
	}
	reads, lostReads := m.counted(l, false)
	writes, lostWrites := m.counted(l, true)
	if reads+lostReads > 0 && writes+lostWrites > 0 {
		l.loose = l.loose || !m.writes[h] || !h.spent && h.fixed
	}
}

// endLife: Redis has nothing of that owner since at.
func (m *RW) endLife(l *life, at time.Time) {
	for _, t := range m.claims {
		if !slices.Contains(l.by, t) && !(t.revived && t.owner == l.owner) {
			continue
		}
		for _, h := range t.holds {
			h.counted = false
		}
		t.notice, t.trust = at.Add(m.w.Config.Lease/3+time.Millisecond), l.expires
		if t.revived { // it may have been renewed just now
			t.trust = at.Add(m.w.Config.Lease)
		}
		t.doomed, t.revived = true, false
	}
	delete(m.lives, l.owner)
}

// expire ends what nobody renewed. All that it was for must know already.
func (m *RW) expire() {
	for _, l := range m.lives {
		if l.over || time.Now().Before(l.expires) || slices.ContainsFunc(l.by, (*claim).renews) {
			continue
		}
		reads, lost := m.counted(l, false)
		l.unknown = reads + lost
		if m.misled(l) {
			continue
		}
		l.over = true
		for _, t := range l.by {
			for _, h := range t.holds {
				h.counted = false
				if t.over != nil || t.dead || h.spent {
					continue
				}
				if end := h.section.Ended(); h.Remaining() > 0 || end.IsZero() || end.After(l.expires) {
					m.w.Failf("the lease of %s is over since %v, and its section ended at %v, with %v to go", l.owner, l.expires, end, h.Remaining())
				}
			}
			if t.over == nil {
				t.lose()
			}
		}
	}
}

// lapsed: Redis may let others in.
func (l *life) lapsed() bool { return l.over || !time.Now().Before(l.expires) }

// misled: it may be kept alive by a session that is mistaken in what it holds, though not in the owner.
func (m *RW) misled(l *life) bool {
	return slices.ContainsFunc(m.claims, func(t *claim) bool { return t.revived && t.over == nil && t.owner == l.owner })
}

// mislead notes that l may be renewed by such a one.
func (m *RW) mislead(l *life) {
	if m.misled(l) {
		l.shared = true
		l.mayLast(time.Now().Add(m.w.Config.Lease))
	}
}

func (l *life) mayLast(until time.Time) {
	if until.After(l.latest) {
		l.latest = until
	}
}

// others reports whether Redis had anybody but that owner in the lock.
func (m *RW) others(owner string) bool {
	for o := range m.seen.reads {
		if o != owner && (m.seen.expiries[o].After(time.Now()) || m.seen.writes[o] > 0) {
			return true
		}
	}
	for o := range m.seen.writes {
		if o != owner {
			return true
		}
	}
	return false
}
