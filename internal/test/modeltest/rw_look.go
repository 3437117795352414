package modeltest

import (
	"maps"
	"strconv"
	"strings"
	"time"
)

// rwSeen is what Redis has.
type rwSeen struct {
	mode          string
	ends          time.Time      // of the hash
	reads, writes map[string]int // owner -> holds
	expiries      map[string]time.Time
	marks         map[string]time.Time // those that are not over
	line          []string             // the entries of writers
	gate          time.Time            // when the gate was opened last: readers that waited by then come in whoever waits
	marked        map[string]time.Time // when they were first seen like this
}

// gone is a state that began when something went.
type gone struct {
	now  bool
	at   time.Time
	told bool // it was published
}

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
	ranOut := !last.ends.After(now) // since then it was free; who has it now came in behind that
	if m.seen.mode != "read" || last.mode != "read" || m.stirred || m.deleted || ranOut {
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
		// The readers that are let in now come before a writer, for whom the mark lives on if it is longer than a new one.
		kept := len(m.seen.line) > 0 && !m.seen.gate.Before(now.Truncate(time.Millisecond))
		if m.cleared && !kept && now.Sub(last.marked[id]) > time.Millisecond {
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
