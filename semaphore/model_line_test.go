package semaphore_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"relock/internal/test/modeltest"
	"relock/internal/waiting"
)

// What the models know of the line, in which the sessions that wait stand with one entry each, for the caller in
// front. What comes free is for the first entries that fit, in the order of arrival.

// yields is for how long, at most, a session leaves permits that it has had for longer than its share to others.
const yields = 11 * time.Millisecond

// standing is an entry of the line.
type standing struct {
	text, session string
	n             int
	kept          time.Time // since when it keeps what comes free for itself, being the first; zero: it does not
}

// line is what Redis has.
type line struct {
	entries []standing
	called  time.Time // until when permits are left to the entry that was called
	first   string    // the first entry of a session that is there,
	since   time.Time // and since when it is that, as far as was seen
	dead    bool      // one that has died stands in front of that, which does not know yet that it is the first
}

const lineKey = "relock_line1:{" + modelName + "}"

// seat returns the process of an entry that is there; nil if it is gone: nobody listens for it.
func (q *queue) seat(e standing) *modeltest.Seat {
	for _, s := range q.w.Seats {
		if s.Session != nil && s.Session.ID() == e.session {
			return s
		}
	}
	return nil
}

// readLine reads the line, and checks that it has what it should.
func (q *queue) readLine() {
	l := line{first: q.line.first, since: q.line.since}
	score := func(member string, less float64) time.Time {
		s, err := q.w.Redis.ZScore(lineKey, member)
		if err != nil {
			return time.Time{}
		}
		return time.UnixMilli(int64(s - less))
	}
	var members []string
	if q.w.Redis.Exists(lineKey) {
		members, _ = q.w.Redis.ZMembers(lineKey)
		l.called = score("c", 8e15)
		if q.w.Redis.TTL(lineKey) <= 0 {
			q.w.Failf("the line has no TTL")
		}
	}
	first, live := "", map[string]bool{}
	for _, m := range members {
		if !strings.Contains("PQC", m[:1]) {
			continue
		}
		digits, base := m[1:4], 10
		if m[0] == 'C' {
			digits, base = m[1:6], 36
		}
		number, err := strconv.ParseInt(digits, base, 64)
		n := int(number)
		length, err2 := strconv.Atoi(m[15:20])
		if err != nil || err2 != nil || length > len(m)-20 {
			q.w.Failf("the line has the entry %q", m)
			return
		}
		e := standing{text: m, session: m[20 : 20+length], n: n, kept: score("k"+m, 8.2e15)}
		l.entries = append(l.entries, e)
		s := q.seat(e)
		switch {
		case s == nil:
			continue
		case first == "":
			first, l.dead = m, len(l.entries) > 1
		}
		if live[e.session] && q.calm() {
			q.w.Failf("the line has two entries of a session: %q", members)
		}
		live[e.session] = true
		if all := q.waiting(s); q.calm() && (len(all) == 0 || requestOf(all[0]).n != n) {
			q.w.Failf("the line has the entry %q, and there wait %v", m, all)
		}
	}
	if first != l.first {
		l.first, l.since = first, time.Now()
	}
	if len(members) > 0 && len(l.entries) == 0 && !q.killed {
		q.w.Failf("the line stands without an entry: %q", members)
	}
	q.line = l
}

// mustGetIn says why a request that is the first of its process should not wait, if so many are free; or "".
func (q *queue) mustGetIn(c *modeltest.Call, free int) string {
	d, left := requestOf(c), time.Since(q.left) <= yields
	i := q.place(c)
	switch {
	case i < 0 && !left:
		return "its session does not stand in the line"
	case d.n > free || left || time.Now().Before(q.line.called.Add(2*time.Millisecond)):
		return ""
	}
	for _, e := range q.line.entries[:max(i, 0)] {
		switch {
		case q.seat(e) == nil && !q.gave.After(q.line.since) && time.Since(q.line.since) <= q.w.Config.PollFloor:
			return "" // it has died, and nobody has looked since
		case q.seat(e) == nil: // passed over
		case e.n <= free: // that comes first, and is looked at by itself
			return ""
		case e.text == q.line.first && !passes(e.kept):
			return ""
		}
	}
	return fmt.Sprintf("%d are free, and the line is %v", free, q.line.entries)
}

// place returns the place of a request's session in the line, below 0 for none.
func (q *queue) place(c *modeltest.Call) int {
	for i, e := range q.line.entries {
		if q.seat(e) == c.Actor.Seat {
			return i
		}
	}
	return -1
}

// passes reports whether what fits may pass the first entry, which does not, and has been able to for a while: that
// keeps what comes free for 1 s, then lets pass for 1 s, then keeps it for 2 s, and so on.
func passes(kept time.Time) bool {
	if kept.IsZero() {
		return false
	}
	const slack = 5 * time.Millisecond
	past := time.Since(kept)
	for keeps := time.Second; ; keeps = min(2*keeps, 32*time.Second) {
		if past < keeps+slack {
			return false
		}
		if past -= keeps; past < time.Second-slack {
			return true
		}
		past -= time.Second
	}
}

// knows reports whether the first of the line knows when something expires that was to last for so long, and has
// expired so long ago: it asks when it has come to be the first, and from then on at each poll floor.
func (q *queue) knows(lease, ago time.Duration) bool {
	floor := q.w.Config.PollFloor + 2*time.Millisecond
	return ago > floor || ago > 2*time.Millisecond && lease > floor && !q.line.dead && time.Since(q.line.since) > waiting.FirstPatience+2*time.Millisecond
}
