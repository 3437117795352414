package explore

import (
	"strconv"

	"relock/internal/kind"
	"relock/internal/test/explore/memredis"
	"relock/internal/waiting"
)

// What a locker makes of the answers to its commands.

func (c *locker) answered(w *world, m *command, r memredis.Reply, us int64) {
	n, err := r.Numbers()
	if err != nil {
		w.fail(err.Error())
		return
	}
	switch m.what {
	case acquires:
		if m.num == c.num && c.phase == asking {
			c.attempted(w, m, n, us)
		}
	case renews:
		if m.num == c.num && (c.phase == held || c.phase == keeping) {
			c.renewed(w, m, n)
		}
	case looks:
		if m.num == c.num && c.phase == asking {
			c.looked(w, m, n, us)
		}
	case nests, unnests:
		c.nestAnswered(w, m, n)
	case releases:
		c.released(w, m, n, us)
	}
}

// looked takes in the answer to a look: 0 is that it is to ask.
func (c *locker) looked(w *world, m *command, n []int64, us int64) {
	c.looking, c.read, c.offset, c.readAt = false, true, m.sent-n[1], us
	c.soon = c.soon || n[0] == 0
	c.lookAfter(w, m.sent, max(n[0], -1))
}

func (c *locker) renewed(w *world, m *command, n []int64) {
	c.renewing = false
	if n[0] == 0 && !c.flaws.has(ignoresLoss) {
		c.rest()
		return
	}
	from := m.sent
	if c.flaws.has(trustsFromReply) {
		from = w.now()
	}
	c.until = max(c.until, from+trustIn(w.set.lease))
	c.renewAt = m.sent + w.set.lease/3
}

// attempted takes in the answer to an attempt of the claim that asks.
func (c *locker) attempted(w *world, m *command, n []int64, us int64) {
	now := w.now()
	c.flying = false
	a := c.decode(n)
	c.mayHaveRun = a.Status == kind.Granted
	if a.Status == kind.Granted {
		until := m.sent + trustIn(w.set.lease)
		if c.flaws.has(trustsFromReply) {
			until = now + trustIn(w.set.lease)
		}
		if c.flaws.has(noMargin) {
			until = m.sent + w.set.lease + 300
		}
		if now >= until { // later than its own lease
			c.soon = true
			return
		}
		c.enter(w, until, m.sent+w.set.lease/3, a.Token)
		return
	}
	if c.tries && a.Position == 0 {
		c.rest()
		return
	}
	if a.Position > 0 {
		c.standsNow(now, m.sent, a.Value, a.At, us)
	}
	if c.fair {
		c.position = a.Position
		c.lookAfter(w, m.sent, a.Value)
	} else {
		c.lookAfter(w, now, a.Value)
	}
	if c.listensFirst && !c.listening && c.first > 0 {
		c.lookAt = min(c.lookAt, c.first+waiting.FirstPatience.Milliseconds())
	}
	c.hearTold(w)
}

// hearTold takes in a message that has waited for a refusal.
func (c *locker) hearTold(w *world) {
	t := c.told
	c.told = parcel{}
	if t.text != "" && !c.flaws.has(forgetsTold) {
		c.hear(w, t)
	}
}

// decode reads the reply of an acquire script.
func (c *locker) decode(n []int64) (a kind.Answer) {
	switch {
	case len(n) == 1 && c.n > 0: // what is free
		return kind.Answer{Status: kind.Granted, Value: -1}
	case len(n) == 1:
		return kind.Answer{Status: n[0], Value: 1}
	}
	if n[0] == kind.Granted {
		return kind.Answer{Status: n[0], Value: n[1], Token: n[2], Changed: n[3] == 1}
	}
	return kind.Answer{Status: n[0], Value: n[1], At: n[2], Position: n[3]}
}

// standsNow notes that the claim stands in the line, and what Redis's clock said.
func (c *locker) standsNow(now, sent, left, clock, us int64) {
	c.stands, c.read, c.offset, c.readAt = true, true, sent-clock, us
	switch {
	case left < 0:
		c.first = 0
	case c.first == 0:
		c.first = now
	}
}

// lookAfter has it ask again when Redis said that it is worth while, and at each poll floor.
func (c *locker) lookAfter(w *world, now, left int64) {
	sleep := w.set.pollFloor
	if left >= 0 && left < sleep {
		sleep = left + 1
	}
	c.lookAt = now + sleep
	if c.flaws.has(neverLooks) {
		c.lookAt = never
	}
}

// enter begins a section.
func (c *locker) enter(w *world, until, renewAt, token int64) {
	c.wanted = c.wanted || c.stands // those behind it in the line have asked nobody
	c.rest()
	c.nest = notNested
	c.phase, c.until, c.renewAt, c.renewing = held, until, renewAt, false
	if c.tokens {
		if token <= w.tokens && w.robbed[c.who] != c.num {
			w.fail("the token " + strconv.FormatInt(token, 10) + " of " + c.owner(c.num) + " is no greater than one before")
		}
		w.tokens = max(w.tokens, token)
	}
}

func (c *locker) released(w *world, m *command, n []int64, us int64) {
	if m.num != c.num || c.phase != releasing {
		return
	}
	if len(n) == 1 {
		n = []int64{0, 1, n[0]}
	}
	told := c.told
	c.rest()
	if m.anew == 0 {
		return
	}
	c.rounds--
	c.newClaim(m.anew)
	c.told = told
	if len(n) == 5 && n[3] > 0 && !m.resent {
		c.standsNow(w.now(), m.sent, -1, n[4], us)
		c.lookAfter(w, w.now(), -1)
		c.hearTold(w)
		return
	}
	c.mayHaveRun, c.soon = m.resent || n[1] == 0, true
}

func (c *locker) unknown(w *world, m *command) {
	switch {
	case m.what == acquires:
		if m.num == c.num && c.phase == asking {
			c.flying, c.mayHaveRun, c.soon = false, true, true
		}
	case m.what == renews:
		if m.num == c.num && (c.phase == held || c.phase == keeping) {
			c.renewing, c.renewAt = false, w.now()
		}
	case m.what == nests || m.what == unnests:
		c.nestAgain(w, m)
	default:
		if m.what == looks { // the next one does as well
			if m.num == c.num {
				c.looking, c.lookAt = false, w.now()
			}
			return
		}
		again := *m
		again.resent = true
		w.send(c.who, &again)
	}
}
