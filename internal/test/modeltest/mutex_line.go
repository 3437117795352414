package modeltest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/internal/waiting"
)

// What the model of a plain lock knows of the line, in which the sessions that wait stand: that has one
// entry of each. A release may grant the lock to the first of them. Redis keeps a lock that was granted for a
// short time only, until the session has confirmed it.

// grantLease is for how long Redis keeps a lock that was granted.
func (m *Mutex) grantLease() time.Duration { return min(waiting.GrantLease, m.w.Config.QueueLease/4) }

// unconfirmed reports whether a claim has come by a grant and need not be confirmed yet: only for so short a
// time may its lock have so little to live. That of a plain lock is confirmed at once if others of its process
// wait, that of a fair one if others of its run do.
func (m *Mutex) unconfirmed(t *claim, ttl time.Duration) bool {
	age := time.Since(t.granted)
	return m.lined() && !t.granted.IsZero() && age < waiting.ConfirmAfter && ttl >= m.grantLease()-age &&
		(m.kind.Fair || !m.awaited(t))
}

// awaited reports whether others of a claim's process wait for the lock.
func (m *Mutex) awaited(t *claim) bool {
	return slices.ContainsFunc(m.w.Waiting(), func(c *Call) bool {
		_, ok := c.Data.(*lockCall)
		return ok && c.Actor.Seat == t.seat
	})
}

// lined reports whether releases may grant the lock.
func (m *Mutex) lined() bool { return m.kind.Line != "" || m.kind.Fair }

// confirmed notes that the locks were confirmed that had been granted so long ago, or are awaited. That is done
// once whatever has become of the section's context: the grant's lease is shorter than what was asked for.
func (m *Mutex) confirmed() {
	for _, t := range m.by {
		now, at := time.Now(), t.granted.Add(waiting.ConfirmAfter)
		if !m.lined() || t.granted.IsZero() || t.confirmed || t.over != nil || t.dead {
			continue
		}
		if now.Before(at) {
			if m.awaited(t) {
				m.mayLast(now.Add(m.w.Config.Lease))
			}
			continue
		}
		t.confirmed = true
		m.mayLast(at.Add(m.w.Config.Lease))
		if m.w.Redis.HGet(m.kind.Key, t.owner) != "" {
			m.expires = time.Now().Add(m.w.Redis.TTL(m.kind.Key))
		}
	}
}

// mayBeGranted reports whether a call that got in may have been granted the lock by another's release: a
// named owner, or one with a lease of its own, is called and asks.
func (d *lockCall) mayBeGranted() bool { return !d.try && d.owner == "" && d.lease == 0 }

// checkLine compares the line in Redis with who waits.
func (m *Mutex) checkLine() {
	if m.kind.Line == "" || !m.w.Redis.Exists(m.kind.Line) {
		m.checkInLine(nil)
		return
	}
	if m.w.Redis.TTL(m.kind.Line) <= 0 {
		m.w.Failf("%q has no TTL", m.kind.Line)
	}
	members, err := m.w.Redis.ZMembers(m.kind.Line)
	if err != nil {
		m.w.Failf("the line: %v", err)
		return
	}
	entries := map[string]string{} // by session
	for _, e := range members {
		if !strings.Contains("gazn", e[:1]) {
			continue
		}
		n, err := strconv.Atoi(e[15:20])
		if err != nil || n > len(e)-20 {
			m.w.Failf("the line has the entry %q", e)
			return
		}
		session := e[20 : 20+n]
		if old, ok := entries[session]; ok && m.calm() {
			m.w.Failf("the line has the entries %q and %q of one session", old, e)
		}
		entries[session] = e
	}
	if len(entries) == 0 && m.queue.killed.IsZero() { // what speaks of the dead may outlive their entries
		m.w.Failf("the line stands without an entry: %q", members)
	}
	for session, e := range entries {
		p, known := m.queue.sessions[session]
		switch {
		case !known || p.gone:
			m.w.Failf("the line has the entry %q of a session that has closed", e)
		case p.live() && m.calm() && !slices.ContainsFunc(m.w.Waiting(), func(c *Call) bool {
			d, ok := c.Data.(*lockCall)
			return ok && d.session == session
		}):
			m.w.Failf("the line has the entry %q, and nobody waits there", e)
		}
	}
	m.checkInLine(entries)
}

// checkInLine: the session of a caller that waits for a lock of another process stands in the line. One that has just found
// its own claim gone need not yet: it may be leaving the lock to others. Of a session
// with a named waiter that is not sure in each instant: the entries of one name are the same text.
func (m *Mutex) checkInLine(entries map[string]string) {
	if m.kind.Line == "" || m.owner == "" || !m.calm() || time.Since(m.since) <= yields { // it may have left it to that owner
		return
	}
	for _, c := range m.w.Waiting() {
		d, ok := c.Data.(*lockCall)
		here := slices.ContainsFunc(m.claims, func(t *claim) bool { return t.seat == c.Actor.Seat && t.life == c.Life && t.over == nil })
		named := ok && slices.ContainsFunc(m.w.Waiting(), func(o *Call) bool {
			od, ok := o.Data.(*lockCall)
			return ok && od.session == d.session && od.owner != ""
		})
		if !ok || here || named || time.Since(m.learnt[c.Actor.Seat]) <= yields {
			continue
		}
		if _, in := entries[d.session]; !in {
			m.w.Failf("%v: %s waits, and its session does not stand in the line", c.Actor, c.Text)
		}
	}
}
