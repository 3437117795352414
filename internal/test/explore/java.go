package explore

import (
	"strconv"
	"strings"
	"testing/fstest"

	"relock/internal/script"
	"relock/internal/test/explore/memredis"
)

// A javaLock is what tells Redisson's locks apart: the commands of its scripts.
type javaLock interface {
	lock(w *world, owner string) script.Command
	unlock(w *world, owner string) script.Command
	// locked reads the reply of lock: whether it has got in, and else in how many ms it asks again; below 0: when it hears.
	locked(w *world, r memredis.Reply) (ok bool, wait int64)
}

// A renewed lock has no lease of its own: Redisson's watchdog renews it each third of one.
type renewed interface {
	renew(w *world, owner string) script.Command
}

// A java is a thread of a Java process that locks and unlocks by Redisson's scripts, a few times, with a lease. It asks, subscribes
// to the lock's channel, asks again, and then waits for a message or for as long as it was told. It stands in no line.
// Redisson sends no acquisition again, and its scripts do not tell one that is: no answer of its gets lost.
type java struct {
	*javaRole
	phase, rounds int8
	num           int8 // of the thread, which is another one each time
	flying        bool
	subscribed    bool
	woken         bool
	lookAt        int64
	until         int64
	renewAt       int64 // never: there is no watchdog, or it has found the hold gone
}

// A javaRole is what does not change of one.
type javaRole struct {
	who  int8
	does javaLock
	mode byte // of trust
	n    int  // permits
}

// What a java's commands are, besides acquires and releases.
const forgets int8 = unnests + 1 // it deletes the latch of an unlock

var (
	javaScripts = "testdata/redisson/"
	javaForgets = script.Load(fstest.MapFS{"del.lua": {Data: []byte("-- Redisson deletes the latch of an unlock.\nreturn redis.call('DEL', KEYS[1])\n")}}, "del.lua")
)

// withJava adds a Java thread to a setup, which gets in so many times.
func (set *Setup) withJava(does javaLock, mode byte, n int, rounds int8) *Setup {
	ours, perms := set.clients, set.perms
	set.perms = nil
	for _, p := range perms {
		set.perms = append(set.perms, append(append([]int{}, p...), len(p)))
	}
	set.clients = func(set *Setup) []client {
		all := ours(set)
		for _, c := range all {
			c := c.(*locker)
			c.listensFirst = true
		}
		return append(all, &java{javaRole: &javaRole{who: int8(len(all)), does: does, mode: mode, n: n}, rounds: rounds})
	}
	set.others = true
	// The first of a line listens after a moment, and one that is left out for a moment in favour of others asks after that.
	set.calmMost = []calmCost{{4, 4, 20}, {12, 24, 4000}}
	return set
}

// foreign reports whether a client is none of this library.
func (w *world) foreign(i int) bool {
	_, ok := w.clients[i].(*java)
	return ok
}

func (c *java) copy() client {
	d := *c
	return &d
}

func (c *java) owner(num int8) string { return ids[c.who:c.who+1] + ":" + strconv.Itoa(int(num)) }

func (c *java) own(now int64, buf []ownStep) []ownStep {
	switch {
	case c.phase == idle && c.rounds > 0:
		buf = append(buf, ownStep{code: begin})
	case c.phase == asking && !c.flying:
		if c.woken || now >= c.lookAt {
			buf = append(buf, ownStep{code: ask, prompt: true, look: !c.woken})
		}
		buf = append(buf, ownStep{code: cancel, cost: 1})
	case c.phase == held:
		if now >= c.renewAt {
			buf = append(buf, ownStep{code: renew, prompt: true})
		}
		buf = append(buf, ownStep{code: unlock})
	}
	return buf
}

func (c *java) describe(code int8) string {
	return "(Java) " + map[int8]string{ask: "asks again", unlock: "unlocks", begin: "begins to lock", cancel: "waits no more", renew: "renews"}[code]
}

func (c *java) sends(m *command) string {
	return map[int8]string{acquires: "lock", releases: "unlock", forgets: "DEL of the latch", renews: "renewal"}[m.what] + " of Java's " + c.owner(m.num)
}

func (c *java) act(w *world, code int8) {
	switch code {
	case begin:
		c.rounds--
		c.num++
		c.phase, c.subscribed = asking, false
		c.attempt(w)
	case ask:
		c.attempt(w)
	case cancel:
		c.phase, c.subscribed, c.woken = idle, false, false
	case renew:
		c.renewAt = never // the next time is a while after the answer
		w.send(c.who, &command{Command: c.does.(renewed).renew(w, c.owner(c.num)), what: renews, num: c.num, foreign: true})
	case unlock:
		c.phase = releasing
		w.send(c.who, &command{Command: c.does.unlock(w, c.owner(c.num)), what: releases, num: c.num, foreign: true})
	}
}

func (c *java) attempt(w *world) {
	c.flying, c.woken = true, false
	w.send(c.who, &command{Command: c.does.lock(w, c.owner(c.num)), what: acquires, num: c.num, foreign: true})
}

func (c *java) answered(w *world, m *command, r memredis.Reply, _ int64) {
	switch m.what {
	case acquires:
		c.flying = false
		ok, wait := c.does.locked(w, r)
		switch {
		case ok:
			c.phase, c.until, c.subscribed, c.woken = held, m.sent+w.set.lease, false, false
			c.renewAt = never
			if _, ok := c.does.(renewed); ok {
				c.renewAt = w.now() + w.set.lease/3
			}
		case !c.subscribed:
			c.subscribed, c.woken = true, true
		case wait < 0:
			c.lookAt = never
		default:
			c.lookAt = w.now() + wait + 1
		}
	case renews:
		switch {
		case c.phase != held || m.num != c.num:
		case r.Int == 1:
			c.until, c.renewAt = max(c.until, m.sent+w.set.lease), w.now()+w.set.lease/3
		default: // Redisson does not tell the thread: what that does then is not ours
			c.until = w.now()
		}
	case releases:
		c.phase = idle
		if latch := m.Keys[len(m.Keys)-1]; strings.Contains(latch, "unlock_latch") {
			w.send(c.who, &command{Command: script.Command{Script: javaForgets, Keys: []string{latch}}, what: forgets, num: m.num, foreign: true})
		}
	}
}

func (c *java) unknown(w *world, m *command) { w.fail("the answer to the " + c.sends(m) + " is lost") }

func (c *java) hear(_ *world, p parcel) { c.woken = c.woken || p.fromLock && c.phase == asking }

func (c *java) listens() bool { return c.subscribed }

func (c *java) next(now int64) int64 {
	switch {
	case c.phase == asking && !c.flying:
		return c.lookAt
	case c.phase == held && c.renewAt > now:
		return min(c.until, c.renewAt)
	case c.phase == held:
		return c.until
	}
	return never
}

func (c *java) over() bool { return c.phase == idle && c.rounds == 0 }

func (c *java) claims() bool { return c.phase != idle }

func (c *java) trusts(now int64) trust {
	if c.phase != held || now >= c.until {
		return trust{}
	}
	return trust{c.mode, c.num, c.n}
}

func (c *java) lives(num int8) bool { return num == c.num && c.phase != idle }

func (c *java) moments(func(int64)) {}

func (c *java) write(h *hasher) {
	h.byte(byte(c.phase))
	h.byte(byte(c.rounds))
	h.byte(byte(c.num))
	switch c.phase {
	case asking:
		h.flag(c.flying)
		h.flag(c.subscribed)
		h.flag(c.woken)
		if !c.flying && !c.woken {
			h.until(c.lookAt)
		}
	case held:
		h.until(c.until)
		h.until(c.renewAt)
	}
}
