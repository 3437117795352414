package modeltest

import (
	"time"
)

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
