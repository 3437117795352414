package explore

import (
	"fmt"
	"strconv"
	"strings"
	"testing/fstest"

	"relock/internal/idgen"
	"relock/internal/mutex"
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
			c.role.first = !c.reads
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
		buf = append(buf, ownStep{code: unlock})
	}
	return buf
}

func (c *java) describe(code int8) string {
	return "(Java) " + map[int8]string{ask: "asks again", unlock: "unlocks", begin: "begins to lock", cancel: "waits no more"}[code]
}

func (c *java) sends(m *command) string {
	return map[int8]string{acquires: "lock", releases: "unlock", forgets: "DEL of the latch"}[m.what] + " of Java's " + c.owner(m.num)
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
		case !c.subscribed:
			c.subscribed, c.woken = true, true
		case wait < 0:
			c.lookAt = never
		default:
			c.lookAt = w.now() + wait + 1
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

func (c *java) next(int64) int64 {
	switch {
	case c.phase == asking && !c.flying:
		return c.lookAt
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

func (c *java) standing() int8 { return 0 }

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
	}
}

// nilOrTTL is how Redisson's locks answer: nil, or for how many ms another holds it.
func nilOrTTL(r memredis.Reply) (ok bool, wait int64) { return r.Kind == memredis.Nil, r.Int }

// latchLife is for how long the latch of an unlock stands, in ms; it is deleted before.
const latchLife = "16000"

// A javaMutex is RLock.
type javaMutex struct{ *mutex.Primitive }

var javaLocks, javaUnlocks = load(javaScripts + "lock.lua"), load(javaScripts + "unlock.lua")

func (j javaMutex) latch(owner string) string {
	return j.Names().Prefixed("redisson_unlock_latch") + ":" + owner
}

func (j javaMutex) lock(w *world, owner string) script.Command {
	return script.Command{Script: javaLocks, Keys: []string{"lock"}, Args: []string{strconv.FormatInt(w.set.lease, 10), owner}}
}

func (j javaMutex) unlock(w *world, owner string) script.Command {
	return script.Command{Script: javaUnlocks, Keys: []string{"lock", j.Channel(), j.latch(owner)},
		Args: []string{"0", strconv.FormatInt(w.set.lease, 10), owner, "PUBLISH", latchLife}}
}

func (j javaMutex) locked(_ *world, r memredis.Reply) (bool, int64) { return nilOrTTL(r) }

// A javaSide is a side of RReadWriteLock.
type javaSide struct {
	*Sides
	reads bool
}

var (
	javaReads, javaReadEnds   = load(javaScripts + "read_lock.lua"), load(javaScripts + "read_unlock.lua")
	javaWrites, javaWriteEnds = load(javaScripts + "write_lock.lua"), load(javaScripts + "write_unlock.lua")
)

func (j javaSide) lock(w *world, owner string) script.Command {
	lease := strconv.FormatInt(w.set.lease, 10)
	if j.reads {
		return script.Command{Script: javaReads, Keys: []string{"lock", j.timeouts(owner)}, Args: []string{lease, owner, owner + ":write"}}
	}
	return script.Command{Script: javaWrites, Keys: []string{"lock"}, Args: []string{lease, owner + ":write"}}
}

func (j javaSide) unlock(w *world, owner string) script.Command {
	latch := j.Names.Prefixed("redisson_unlock_latch") + ":" + owner
	if j.reads {
		return script.Command{Script: javaReadEnds, Args: []string{"0", owner, "PUBLISH", latchLife},
			Keys: []string{"lock", j.channel(), j.timeouts(owner), strings.TrimSuffix(j.Names.Suffixed(""), ":"), latch}}
	}
	return script.Command{Script: javaWriteEnds, Keys: []string{"lock", j.channel(), latch},
		Args: []string{"1", strconv.FormatInt(w.set.lease, 10), owner + ":write", "PUBLISH", latchLife}}
}

// timeouts is what the timeout keys of an owner begin with.
func (j javaSide) timeouts(owner string) string { return strings.TrimSuffix(j.timeout(owner), ":1") }

func (j javaSide) locked(_ *world, r memredis.Reply) (bool, int64) { return nilOrTTL(r) }

// A javaPermits is RPermitExpirableSemaphore.
type javaPermits struct{ *Permits }

var javaTakes, javaGives = load(javaScripts + "permit_acquire.lua"), load(javaScripts + "permit_release.lua")

// endless is the expiry of a permit without a lease.
const endless = "922337203685477"

func (j javaPermits) lock(w *world, owner string) script.Command {
	ms := func(at int64) string { return strconv.FormatInt(at, 10) }
	return script.Command{Script: javaTakes, Keys: append(j.keys()[:2:2], j.channel()),
		Args: idgen.AppendPermits([]string{"1", ms(w.now() + w.set.lease), ms(w.now()), endless, "PUBLISH"}, owner, 1)}
}

func (j javaPermits) unlock(w *world, owner string) script.Command {
	args := append(idgen.AppendPermits(nil, owner, 1), "1", strconv.FormatInt(w.now(), 10), "PUBLISH")
	return script.Command{Script: javaGives, Keys: []string{j.Names.Key(), j.channel(), j.keys()[1]}, Args: args}
}

func (j javaPermits) locked(w *world, r memredis.Reply) (ok bool, wait int64) {
	at, waits := strings.CutPrefix(r.Text, ":")
	if !waits {
		return r.Text == "OK", -1
	}
	expiry, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		w.fail(fmt.Sprintf("Java does not understand %v", r))
	}
	return false, max(0, expiry-w.now())
}
