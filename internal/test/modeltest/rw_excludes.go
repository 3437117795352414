package modeltest

import "time"

// excludes looks at who else is in when somebody gets in.
func (m *RW) excludes(c *Call, d *rwCall, owner string) {
	for _, l := range m.lives {
		reads := m.readsThatStand(l)
		writes, lost := m.counted(l, true)
		switch {
		case l.owner == owner:
			// Who read only since this instant may have come in after the writer.
			if d.write && reads > 0 && m.seen.reads[owner] > 0 && writes+lost == 0 && !l.lapsed() {
				m.w.Failf("%s got in: an upgrade", c.Text)
			}
		case !l.lapsed() && (writes > 0 || d.write && reads > 0):
			m.w.Failf("%s got in while %s had %d read and %d write holds", c.Text, l.owner, reads, writes)
		case d.write:
			m.endLife(l, time.Now()) // its lease is over, or what was lost has been taken back
		default:
			for _, t := range l.by {
				for _, h := range t.holds {
					h.counted = h.counted && !m.writes[h] // as above
				}
			}
		}
	}
}

// readsThatStand counts the read holds of an owner that keep a writer out. While the owner
// also writes, somewhere, the lock outlives the lease of its readers: the hold of a killed
// reader is counted until the writer leaves, and goes with it. So once that lease was over
// only those holds count that somebody still trusts.
func (m *RW) readsThatStand(l *life) int {
	reads, _ := m.counted(l, false)
	if m.seen.expiries[l.owner].After(time.Now()) {
		return reads
	}
	trusted := 0
	for _, t := range l.by {
		for _, h := range t.holds {
			if h.counted && !m.writes[h] && !t.dead && h.Remaining() > 0 {
				trusted++
			}
		}
	}
	return min(reads, trusted)
}
