package modeltest

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkOrder: a call that enters overtakes no other. Behind the first of a named owner others
// may come in its name in the same instant, from other processes too.
func (m *Mutex) checkOrder(c *Call, d *lockCall, ended []*Call) {
	if !m.kind.Fair || !m.queueCalm() {
		return
	}
	m.checkPunctual(c)
	for _, o := range m.w.Waiting() {
		od, ok := o.Data.(*lockCall)
		if ok && od.before(d) && !od.scattered && !slices.ContainsFunc(ended, func(e *Call) bool {
			ed, ok := e.Data.(*lockCall)
			return ok && e.Err == nil && d.owner != "" && ed.owner == d.owner && !od.before(ed)
		}) {
			m.w.Failf("%s got in before %v: %s", c.Text, o.Actor, o.Text)
		}
	}
}

// before reports whether d's place is certainly in front of that of other.
func (d *lockCall) before(other *lockCall) bool { return d.since > 0 && other.from >= d.since }

// checkQueue compares the queue with that in Redis, and notes who is in it by now.
func (m *Mutex) checkQueue(ended []*Call) {
	if !m.kind.Fair {
		return
	}
	m.queue.looks++
	if len(ended) > 0 {
		m.queue.jolt = time.Now()
	}
	m.arrived()
	m.checkHelpers()
	places := m.kind.Queue(m.w.Redis)
	var live []Place
	for _, p := range places {
		proc, known := m.queue.sessions[p.Session]
		switch {
		case !known || proc.gone:
			m.w.Failf("Redis has a place of session %s, which has closed", p.Session)
		case proc.live():
			live = append(live, p)
		}
	}
	if m.queueCalm() {
		m.checkPlaces(live)
		m.checkCount(ended, len(live), len(places))
	}
	m.checkLeft(ended)
	m.queue.front = Place{}
	if len(places) > 0 {
		m.queue.front = places[0]
	}
}

// arrived notes who is certainly in the queue by now, or certainly not.
func (m *Mutex) arrived() {
	for _, c := range m.w.Waiting() {
		d, ok := c.Data.(*lockCall)
		if ok && d.scattered && m.queueCalm() && !m.inRun(d) {
			d.scattered = false
		}
		if !ok || d.since > 0 || d.scattered || time.Since(c.Began) < gatherFor {
			continue
		}
		alone, behind := true, false
		for _, o := range m.w.Waiting() {
			od, ok := o.Data.(*lockCall)
			if ok && o != c && od.session == d.session && od.owner == d.owner && d.owner != "" {
				alone, behind = false, behind || od.since > 0
			}
		}
		switch {
		case behind:
			d.from = m.queue.looks
		case d.owner != "" && time.Since(m.queue.jolt) < gatherFor: // it may just have come to its turn
		case alone && m.queueCalm():
			d.since = m.queue.looks
		}
	}
}

// checkHelpers: every key but the token has a TTL, and each hold an id.
func (m *Mutex) checkHelpers() {
	for _, key := range m.w.Redis.Keys() {
		if m.w.Redis.TTL(key) <= 0 && !slices.Contains(m.w.Keep, key) {
			m.w.Failf("%q has no TTL", key)
		}
	}
	if m.owner == "" || m.w.Redis.HGet(m.kind.Key, m.owner) == "" {
		return
	}
	ids, _ := m.w.Redis.SMembers(m.kind.Ids)
	ids = slices.DeleteFunc(ids, func(id string) bool { return strings.HasPrefix(id, "forced:") })
	count := m.w.Redis.HGet(m.kind.Key, m.owner)
	n, _ := strconv.Atoi(count)
	// The first hold of a private owner has no id, and does not remove those of an earlier life.
	private := m.owner != "ann" && m.owner != "bob"
	if n != len(ids) && !(private && n >= 1 && n <= len(ids)+1) {
		m.w.Failf("Redis counts %s holds, and has the ids %q", count, ids)
	}
	if lock, own := m.w.Redis.TTL(m.kind.Key), m.w.Redis.TTL(m.kind.Ids); !(private && n == 1) && lock-own > time.Millisecond {
		m.w.Failf("the lock lives for %v, the ids of its holds for %v", lock, own)
	}
}

// checkPlaces compares who waits with the places of the living in Redis.
func (m *Mutex) checkPlaces(places []Place) {
	var waiting, sorted []*lockCall // as they came, the certain ones first; in Redis's order
	for _, certain := range []bool{true, false} {
		for _, c := range m.w.Waiting() {
			if d, ok := c.Data.(*lockCall); ok && certain == (d.since > 0) {
				waiting = append(waiting, d)
			}
		}
	}
	waiting, unsure := m.dropRuns(waiting, places)
	for _, p := range places {
		i := slices.IndexFunc(waiting, func(d *lockCall) bool {
			return d.session == p.Session && (d.owner == p.Owner || d.owner == "" && strings.HasPrefix(p.Owner, p.Session+":")) &&
				(!p.Known || p.Shares == m.gathers(d))
		})
		if i < 0 {
			m.w.Failf("Redis has a place of %q on session %s, where nobody waits in that name", p.Owner, p.Session)
			return
		}
		sorted = append(sorted, waiting[i])
		waiting = slices.Delete(waiting, i, i+1)
	}
	for _, d := range waiting {
		if d.since > 0 {
			m.w.Failf("a Lock of owner %q on session %s waits, and has no place in %v", d.owner, d.session, places)
		}
	}
	for i, d := range sorted {
		for _, behind := range sorted[i+1:] {
			if behind.before(d) && !unsure[behind.session] {
				m.w.Failf("in Redis %q of session %s is in front of %q of session %s, who came before",
					d.owner, d.session, behind.owner, behind.session)
			}
		}
	}
}

// checkCount judges what Waiters said: the living, and the dead until they have been silent
// for too long (also those of whom only that is left when they were last heard of).
func (m *Mutex) checkCount(ended []*Call, live, all int) {
	within := func(t time.Time) bool { return !t.IsZero() && time.Since(t) < m.w.Config.QueueLease }
	switch {
	case !within(m.queue.killed):
		all = live
	case within(m.queue.stirred):
		all = math.MaxInt
	}
	for _, c := range ended {
		if d, ok := c.Data.(*waitersCall); ok && (c.Err != nil || d.n < live || d.n > all) {
			m.w.Failf("Waiters returned %d, %v; %d wait, and there are %d places", d.n, c.Err, live, all)
		}
	}
}

// checkLeft: one who leaves the queue while the lock is free has let in the next.
func (m *Mutex) checkLeft(ended []*Call) {
	if m.owner != "" || !m.queueCalm() {
		return
	}
	left := slices.ContainsFunc(ended, func(c *Call) bool {
		d, ok := c.Data.(*lockCall)
		return ok && c.Err != nil && d.since > 0 && !d.scattered
	})
	for _, c := range m.w.Waiting() {
		if d, ok := c.Data.(*lockCall); ok && left && d.since > 0 && !d.scattered {
			m.w.Failf("%v: %s waits, the lock is free, and somebody has just left the queue", c.Actor, c.Text)
		}
	}
}

// checkPunctual: when a lease has ended and nothing else has happened for a while, the first
// one in the queue has asked how long it takes, and is there then. It is called before
// what has happened now is noted.
func (m *Mutex) checkPunctual(c *Call) {
	late := time.Since(m.since)
	if m.since.Sub(m.queue.jolt) <= m.heartbeat() || !m.queueCalm() || late <= 3*time.Millisecond {
		return
	}
	if p := m.queue.front; m.queue.sessions[p.Session].live() {
		m.w.Failf("%s got in %v after the lease had ended; first in the queue was %q of session %s", c.Text, late, p.Owner, p.Session)
	}
}
