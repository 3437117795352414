package modeltest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/internal/waiting"
	"relock/rlock"
)

// look reads what Redis has, and compares who is in, and how deep.
func (m *RW) look() {
	last, now := m.seen, time.Now()
	m.seen = m.read(now)
	owners := maps.Clone(m.seen.reads)
	maps.Copy(owners, m.seen.writes)
	for owner := range owners {
		if m.lives[owner] == nil {
			m.w.Failf("Redis has %d read and %d write holds of %s, who is not in", m.seen.reads[owner], m.seen.writes[owner], owner)
			return
		}
	}
	for _, l := range m.lives {
		m.sweep(l, &last, now)
		m.lookAt(l, now)
	}
	if want := map[bool]string{true: "write", false: "read"}[len(m.seen.writes) > 0]; len(owners) > 0 && m.seen.mode != want || len(m.seen.writes) > 1 {
		m.w.Failf("the mode is %q, and there are %d readers and %d writers", m.seen.mode, len(m.seen.reads), len(m.seen.writes))
	}
	m.went(&last, now)
	m.join()
}

// read reads all keys but the timeouts.
func (m *RW) read(now time.Time) rwSeen {
	r := m.w.Redis
	s := rwSeen{reads: map[string]int{}, writes: map[string]int{}, expiries: map[string]time.Time{}, marks: map[string]time.Time{}, marked: map[string]time.Time{}}
	s.ends = now.Add(r.TTL(m.kind.Key))
	fields, _ := r.HKeys(m.kind.Key)
	for _, f := range fields {
		v := r.HGet(m.kind.Key, f)
		n, _ := strconv.Atoi(v)
		if owner, ok := strings.CutSuffix(f, ":write"); ok {
			s.writes[owner] = n
		} else if f == "mode" {
			s.mode = v
		} else {
			s.reads[f] = n
		}
	}
	readers, _ := r.ZMembers(m.kind.Readers)
	for _, owner := range readers {
		score, _ := r.ZScore(m.kind.Readers, owner)
		s.expiries[owner] = time.UnixMilli(int64(score))
	}
	members, _ := r.ZMembers(m.kind.Line)
	for _, id := range members {
		score, _ := r.ZScore(m.kind.Line, id)
		switch until := time.UnixMilli(int64(score - 8.4e15)); {
		case strings.ContainsRune("VUWN", rune(id[0])):
			s.line = append(s.line, id)
		case id == "t":
			s.gate = time.UnixMilli(int64(score - 8.5e15))
		case id == "m" && until.After(now):
			s.marks[id], s.marked[id] = until, now
		}
	}
	return s
}

// sweep: a write hold that was released as the last one took those read holds of its owner
// along whose lease was over. Nobody trusts them.
func (m *RW) sweep(l *life, last *rwSeen, now time.Time) {
	until, reads := last.expiries[l.owner], last.reads[l.owner]
	if last.writes[l.owner] == 0 || m.seen.writes[l.owner] > 0 || m.seen.reads[l.owner] >= reads || until.After(now) {
		return
	}
	for _, t := range l.by {
		for _, h := range t.holds {
			h.counted = h.counted && (m.writes[h] || !t.dead && h.Remaining() > 0)
		}
	}
}

// lookAt compares one owner's holds.
func (m *RW) lookAt(l *life, now time.Time) {
	reads, lostReads := m.counted(l, false)
	writes, lostWrites := m.counted(l, true)
	gotReads, gotWrites := m.seen.reads[l.owner], m.seen.writes[l.owner]
	if gotReads+gotWrites == 0 && (l.lapsed() || reads+writes == 0) {
		m.endLife(l, now)
		return
	}
	if gotReads < reads || gotReads > reads+lostReads || gotWrites < writes || gotWrites > writes+lostWrites {
		m.w.Failf("Redis counts %d read and %d write holds of %s, want %d (and at most %d lost ones) and %d (%d)",
			gotReads, gotWrites, l.owner, reads, lostReads, writes, lostWrites)
	}
	l.expires = m.seen.ends
	if gotWrites == 0 {
		l.expires = m.seen.expiries[l.owner]
	}
	if l.over && now.Before(l.expires) {
		m.w.Failf("the lease of %s was over, and ends in %v", l.owner, l.expires.Sub(now))
	}
}

// went notes what has gone: the last owner, or the last that keeps readers out.
func (m *RW) went(last *rwSeen, now time.Time) {
	// Marks may have ended early, see granted.
	long := now.Sub(m.freeSince(last)) >= time.Second
	for what, g := range map[bool]*gone{true: &m.free, false: &m.open} {
		was, is := last.obstacles(what), m.seen.obstacles(what)
		kept := func(until time.Time) bool { return until.After(now) }
		g.now = true
		for _, until := range is {
			g.now = g.now && !kept(until)
		}
		if !g.now || len(was) == 0 {
			continue
		}
		g.at, g.told = time.Time{}, false
		for _, until := range was {
			if kept(until) { // something was done
				g.at, g.told = now, !m.deleted && !long
			} else if g.at.Before(until) {
				g.at = until
			}
		}
	}
	if m.seen.mode != "read" || last.mode != "read" || m.stirred || m.deleted {
		m.reading = now
	}
	for owner := range last.writes {
		m.cleared = m.cleared || m.seen.writes[owner] == 0 && last.ends.After(now) && !m.deleted
	}
	for id, until := range last.marks {
		if !m.seen.marks[id].Equal(until) {
			continue
		}
		m.seen.marked[id] = last.marked[id]
		if m.cleared && now.Sub(last.marked[id]) > time.Millisecond {
			m.w.Failf("a writer has left, and a mark is there that was there before")
		}
	}
	_, writers := m.waiting()
	switch {
	case m.cleared:
		m.dead = time.Time{} // a writer that leaves takes all marks away
	case writers > 0:
		m.brief = time.Time{} // a new mark keeps the old ones
	case m.free.now && m.free.told && m.free.at.Equal(now) && m.brief.IsZero():
		m.brief = now.Add(time.Second + time.Millisecond)
	}
}

// obstacles returns until when each lasts that keeps out everybody, or else readers.
func (s *rwSeen) obstacles(everybody bool) (all []time.Time) {
	for range s.writes {
		all = append(all, s.ends)
	}
	if everybody {
		for o := range s.reads {
			all = append(all, s.expiries[o])
		}
		return all
	}
	for _, until := range s.marks {
		all = append(all, until)
	}
	return all
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

// confirmed notes that what was granted so long ago was confirmed: see Mutex.confirmed.
func (m *RW) confirmed() {
	for _, l := range m.lives {
		for _, t := range l.by {
			at := t.granted.Add(waiting.ConfirmAfter)
			if t.granted.IsZero() || t.confirmed || t.over != nil || t.dead || time.Now().Before(at) {
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
			if t.over == nil && h.counted && h.fixed && !t.local && !h.ranOut() && l.expires.Add(l.slack).Before(h.until) {
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

// checkMarks: readers are kept out if a writer waits for others since long, and not by one that has gone. Each that has
// asked stands in the line, and nobody else does.
func (m *RW) checkMarks() {
	if !m.calm() {
		return
	}
	now, floor := time.Now(), m.w.Config.PollFloor+2*time.Millisecond
	calls, writers := m.waiting()
	if !now.Before(m.marksEnd()) && writers == 0 && len(m.seen.marks) > 0 {
		m.w.Failf("readers are kept out, and no writer waits")
	}
	marked := 0
	for _, c := range calls {
		d := c.Data.(*rwCall)
		since := latest(d.front, m.reading)
		if d.write && m.inFront(c) && !m.behindItself(c) && m.others(d.owner) && now.Sub(since) > floor {
			marked++
		}
	}
	if marked > 0 && len(m.seen.marks) == 0 {
		m.w.Failf("readers are not kept out, and %d writers wait for them since long", marked)
	}
	if len(m.seen.line) < marked {
		m.w.Failf("%d writers stand in the line, and %d wait since long", len(m.seen.line), marked)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// inFront reports whether a call is the first of its session's line, and notes since when
// it is. Calls of an owner that another call lets in, or not, are in no line.
func (m *RW) inFront(c *Call) bool {
	d := c.Data.(*rwCall)
	calls, _ := m.waiting()
	for _, o := range calls {
		od := o.Data.(*rwCall)
		if o.Actor.Seat == c.Actor.Seat && od.joint > 0 && (od.joint < d.joint || d.joint == 0) {
			return false
		}
	}
	return d.joint > 0 && !d.maybe
}

// join puts those into their lines that have come there.
func (m *RW) join() {
	calls, _ := m.waiting()
	var come []*rwCall
	for _, c := range calls {
		d := c.Data.(*rwCall)
		behind, rival := false, false
		for _, o := range calls {
			od := o.Data.(*rwCall)
			if o != c && o.Actor.Seat == c.Actor.Seat && d.owner != "" && od.owner == d.owner {
				behind, rival = behind || od.joint > 0, true
			}
		}
		if d.joint == 0 && !behind {
			d.maybe = rival // of those who waited for one to leave, any may be the next
			come = append(come, d)
		}
	}
	for _, d := range come {
		m.joins++
		d.joint = m.joins
	}
	for _, c := range calls {
		if d := c.Data.(*rwCall); d.front.IsZero() && m.inFront(c) {
			d.front = time.Now()
		}
	}
}
