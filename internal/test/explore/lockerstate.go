package explore

import (
	"relock/internal/waiting"
)

// What others need to know of a locker.

func (c *locker) listens() bool { return c.listening }

func (c *locker) next(now int64) int64 {
	switch c.phase {
	case asking:
		if !c.flying {
			return min(c.lookAt, c.askAt)
		}
	case keeping:
		return c.nextKept(now)
	case held:
		if c.renews && !c.renewing && c.renewAt > now { // else it does that as soon as it runs
			return min(c.until, c.renewAt)
		}
		return c.until
	}
	return never
}

func (c *locker) over() bool { return (c.phase == idle || c.phase == keeping) && c.rounds == 0 }

func (c *locker) claims() bool { return c.phase != idle }

func (c *locker) trusts(now int64) trust {
	inside := c.phase == held || c.phase == releasing && c.flaws.has(unlocksLate)
	if !inside || now >= c.until {
		return trust{}
	}
	return trust{c.mode, c.num, c.n}
}

func (c *locker) lives(num int8) bool {
	return num == c.num && c.phase != idle || num == c.num+1 && c.phase == releasing
}

func (c *locker) places(at func(int64)) {
	if c.phase == asking && c.position > 0 {
		at(c.position)
	}
}

func (c *locker) moments(at func(us int64)) {
	if c.phase != held && c.phase != keeping && c.read {
		at(c.readAt)
	}
	if c.told.text != "" {
		at(c.told.us)
	}
}

func (c *locker) write(h *hasher) {
	h.byte(byte(c.phase))
	h.byte(byte(c.rounds))
	h.byte(byte(c.num))
	switch c.phase {
	case asking:
		h.flag(c.flying)
		h.flag(c.mayHaveRun)
		h.flag(c.stands)
		h.flag(c.soon)
		if c.first > 0 {
			h.since(c.first, waiting.FirstPatience.Milliseconds())
		}
		h.until(c.lookAt)
		if c.fair {
			h.until(c.askAt)
			h.flag(c.looking)
			if c.position > 0 {
				h.position(c.position)
			}
		}
		h.flag(c.listening)
		h.flag(c.wanted)
		h.text(c.told.text)
		h.moment(c.told.us)
	case held, keeping:
		h.until(c.until)
		h.until(c.renewAt)
		h.flag(c.renewing)
		h.byte(byte(c.nest))
		c.kept.write(h)
	case releasing:
		h.text(c.told.text)
		h.moment(c.told.us)
	}
	if c.phase != held && c.phase != keeping {
		h.moment(c.readAt)
	}
	h.flag(c.read)
	h.num(c.offset)
}
