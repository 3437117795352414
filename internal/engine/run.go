package engine

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"relock/internal/cleanup"
	"relock/internal/script"
)

// The fair queue is what a session knows of all its runs. Its mutex comes after those of the
// locks.
type fairQueue struct {
	mu      sync.Mutex
	entries map[string]*claim       // that were sent, until their claims are retired
	lines   map[*lock]time.Duration // when Redis must hear of a lock's entries
	due     time.Duration           // the earliest of those
	q       Queuer                  // any one, for what the session does not know
}

func (f *fairQueue) add(entry string, c *claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries[entry], f.q = c, c.run.q
}

func (f *fairQueue) remove(entry string, c *claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.entries[entry] == c {
		delete(f.entries, entry)
	}
}

func (f *fairQueue) find(entry string) (*claim, Queuer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entries[entry], f.q
}

// A grantMessage says that a run was let in.
type grantMessage struct {
	at    int64 // by Redis's clock, in ms
	token int64 // the highest
	drawn int   // how many
	last  int64
	place int64
	entry string
	key   string
}

// grantPrefix begins the message of a script that has let a run in.
const grantPrefix = "grant:"

func parseGrant(payload string) (m grantMessage, ok bool) {
	rest, ok := strings.CutPrefix(payload, grantPrefix)
	var n [6]int64
	for i := range n {
		var number string
		var err error
		number, rest, _ = strings.Cut(rest, ":")
		if n[i], err = strconv.ParseInt(number, 10, 64); err != nil {
			return m, false
		}
	}
	if length := n[5]; ok && length >= 0 && length <= int64(len(rest)) {
		return grantMessage{n[0], n[1], int(n[2]), n[3], n[4], rest[:length], rest[length:]}, true
	}
	return m, false
}

// granted takes such a message. A grant to an entry that the session does not know is given back
// at once; not while the session closes, for then the release of each entry is on its way, and
// Close waits for those alone.
func (s *Session) granted(payload string) bool {
	m, ok := parseGrant(payload)
	if !ok {
		return false
	}
	c, q := s.fair.find(m.entry)
	if c == nil {
		if q != nil && s.life.closing.Err() == nil {
			s.clean(m.key, cleanup.Job{Cmds: []script.Command{q.Dismiss(m.key, m.entry)}, Until: s.now() + q.Unconfirmed()})
		}
		return true
	}
	l := c.lock
	l.mu.Lock()
	if c.state == asking {
		l.letIn(c, m)
	}
	l.unlockBehind()
	return true
}

// letIn begins a run that Redis has let in, or asks, if the message cannot be trusted. A fixed
// lease begins now, and so needs a word with Redis, and so do replicas that are to acknowledge it.
func (l *lock) letIn(c *claim, m grantMessage) {
	r := c.run
	if j := r.joiner; j != nil && j.state == asking && j.run.joins == c && j.run.last <= m.last {
		l.merge(j, c) // the answer is on its way
	}
	r.joiner, r.place = nil, m.place
	g, ok := l.direct(r.q, m)
	if !ok || r.lease > 0 || l.s.cfg.Replicas > 0 {
		l.line.send(c)
		l.hasten()
		return
	}
	r.until = m.last
	if m.token > 0 {
		c.account().reserved = m.drawn
	}
	l.begin(c, g)
}

// direct makes a grant of a message, if that can be trusted for a while. When Redis sent it is
// known by Redis's clock only. Since that clock was read, for an earlier answer, at least as
// much time has passed here since that was asked for.
func (l *lock) direct(q Queuer, m grantMessage) (grant, bool) {
	s, n := l.s, l.line
	given := min(n.asked+time.Duration(m.at-n.clock-1)*time.Millisecond, s.now())
	g := grant{status: granted, value: 1, token: m.token, sent: given, unconfirmed: q.Unconfirmed(), doubts: s.conn.Doubts()}
	return g, n.clock > 0 && s.now() < given+trustIn(g.unconfirmed)/2
}

// begin opens the first section of a run that has the lock.
func (l *lock) begin(c *claim, g grant) {
	r := c.run
	if l.line.tail == c {
		l.line.tail = nil
	}
	r.phase, r.joins = queued, nil
	a := l.nextOf(c, l.s.now())
	if a == nil { // they have left, or the run was shorter than they thought
		c.end(c.overAt(l.s.now()), nil)
		return
	}
	a.claim, a.op.ID = c, ""
	if c.num == 0 {
		a.op.ID = c.more.ids[c.prim.Kind().Side][0]
	}
	x := a.admit(g)
	r.waiting--
	r.tell()
	a.claim = nil
	l.dequeue(a)
	wake := a.wake // from here on the acquisition may return, and be reused
	a.given.Store(x)
	wakeUp(wake)
}

// nextOf returns the waiter of a run that is served next; nil if there is none.
func (l *lock) nextOf(c *claim, now time.Duration) *acquisition {
	if c.run.waiting == 0 {
		return nil
	}
	for a := l.queue.Front(); a != nil; a = a.node.Next() {
		if a.standing() == c && a.hopeless == nil && int64(a.arrived) <= c.run.until && (a.deadline == 0 || now < a.deadline) {
			return a
		}
	}
	return nil
}

// goOn opens the next section of a run, or pauses it until a renewal has confirmed the claim;
// it reports false if the run has no waiter left or cannot go on.
func (l *lock) goOn(c *claim, now time.Duration) bool {
	r := c.run
	a := l.nextOf(c, now)
	switch {
	case a == nil || l.state != lockOpen || c.state != held || c.bound || !r.open || now >= c.trust:
		return false
	case c.prim.Kind().Fenced && c.more.tokens == 0:
		return false
	case !c.entrable(now):
		r.paused = true
		if c.renewAt != never { // else it has been asked for
			c.stopped, c.renewAt = false, now
			c.reschedule()
		}
		return true
	}
	r.waiting--
	a.claim = nil
	l.give(c, a, now)
	return true
}

// paused reports whether the claim is a run that waits for a renewal.
func (c *claim) paused() bool { return c.run != nil && c.run.paused }

// resume goes on with a run that a renewal has confirmed.
func (c *claim) resume(now time.Duration) {
	if c.state != held || !c.paused() {
		return
	}
	c.run.paused = false
	switch l := c.lock; {
	case !l.goOn(c, now):
		c.end(c.overAt(now), nil)
	case !c.run.paused:
		l.s.notify(c.traceHandedOver)
	}
}
