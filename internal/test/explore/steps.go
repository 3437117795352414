package explore

import (
	"fmt"
	"slices"
	"strings"

	"relock/internal/test/explore/memredis"
)

// A step is one thing that happens. Its order among the steps of a state is that of the calm run: the first
// one that costs no fault.
type step struct {
	kind stepKind
	who  int8
	arg  int8 // of own: the client's code; of runLate: which one; of execute: the chance
	cost int8
	look bool
}

type stepKind int8

const (
	execute stepKind = iota
	reply
	message
	own
	runLate
	resume
	leisure // a client's own step that may wait
	pass    // time passes
	loseReply
	giveUp
	loseMessage
	stop
	die
	vanish
	remove
	force
)

// steps lists what may happen in a state, in the order of the calm run.
func (w *world) steps(buf []step) []step {
	urgent := len(buf)
	for i := range w.wires {
		if len(w.wires[i].cmds) > 0 {
			buf = append(buf, step{kind: execute, who: int8(i)})
			if w.set.others {
				buf = append(buf, step{kind: execute, who: int8(i), arg: 1})
			}
		}
	}
	for i := range w.wires {
		if wi := &w.wires[i]; wi.state == alive && len(wi.answers) > 0 {
			buf = append(buf, step{kind: reply, who: int8(i)})
		}
	}
	for i := range w.wires {
		if wi := &w.wires[i]; wi.state == alive && len(wi.parcels) > 0 {
			buf = append(buf, step{kind: message, who: int8(i)})
		}
	}
	var mine [8]ownStep
	now := w.now()
	for i := range w.clients {
		if w.wires[i].state != alive {
			continue
		}
		for _, o := range w.clients[i].own(now, mine[:0]) {
			if o.prompt {
				buf = append(buf, step{kind: own, who: int8(i), arg: o.code, look: o.look})
			}
		}
	}
	quiet := len(buf) == urgent
	for i := range w.late {
		buf = append(buf, step{kind: runLate, who: w.late[i].who, arg: int8(i)})
	}
	for i := range w.wires {
		if w.wires[i].state == stopped {
			buf = append(buf, step{kind: resume, who: int8(i)})
		}
	}
	buf = w.leisurely(buf, now)
	if quiet && w.nextTime() != never {
		buf = append(buf, step{kind: pass})
	}
	return w.faultSteps(buf)
}

// leisurely appends the steps of clients that may wait, those that end something first.
func (w *world) leisurely(buf []step, now int64) []step {
	var mine [8]ownStep
	from := len(buf)
	for i := range w.clients {
		if w.wires[i].state != alive {
			continue
		}
		for _, o := range w.clients[i].own(now, mine[:0]) {
			if !o.prompt && o.cost <= w.faults {
				buf = append(buf, step{kind: leisure, who: int8(i), arg: o.code, cost: o.cost})
			}
		}
	}
	slices.SortStableFunc(buf[from:], func(a, b step) int {
		if a.cost != b.cost {
			return int(a.cost - b.cost)
		}
		return int(a.arg - b.arg)
	})
	return buf
}

// faultSteps appends what costs a fault.
func (w *world) faultSteps(buf []step) []step {
	if w.faults == 0 {
		return buf
	}
	may := w.set.mayFail
	for i := range w.wires {
		who, wi := int8(i), &w.wires[i]
		if wi.state == alive && len(wi.answers) > 0 && may.has(loseReply) && !w.foreign(i) {
			buf = append(buf, step{kind: loseReply, who: who, cost: 1})
		}
		if wi.state == alive && len(wi.cmds) > 0 && may.has(giveUp) && !w.foreign(i) {
			buf = append(buf, step{kind: giveUp, who: who, cost: 1})
		}
		if wi.state == alive && len(wi.parcels) > 0 && may.has(loseMessage) {
			buf = append(buf, step{kind: loseMessage, who: who, cost: 1})
		}
		busy := wi.state == alive && !(w.clients[i].over() && !w.clients[i].claims() && len(wi.cmds)+len(wi.answers)+len(wi.parcels) == 0)
		for _, k := range []stepKind{stop, die, vanish} {
			if busy && may.has(k) && (k == stop || w.mayGo(i)) {
				buf = append(buf, step{kind: k, who: who, cost: 1})
			}
		}
	}
	if w.redis.Exists(w.set.key) && (may.has(remove) || may.has(force)) {
		for _, k := range []stepKind{remove, force} {
			if may.has(k) {
				buf = append(buf, step{kind: k, cost: 1})
			}
		}
	}
	return buf
}

// mayGo reports whether a process may end here: one of which nobody would know what it has may not.
func (w *world) mayGo(i int) bool {
	c, ok := w.clients[i].(interface{ mayGo() bool })
	return !ok || c.mayGo()
}

// take has a step happen.
func (w *world) take(s step, wo *worker) {
	w.faults -= s.cost
	wi := &w.wires[s.who]
	switch s.kind {
	case execute:
		c := wi.cmds[0]
		wi.cmds = wi.cmds[1:]
		w.execute(s.who, c, wo, s.arg, true)
	case runLate:
		c := w.late[s.arg].command
		w.late = slices.Delete(w.late, int(s.arg), int(s.arg)+1)
		w.taints |= ranLate
		w.execute(s.who, c, wo, 0, false)
	case reply, loseReply:
		a := wi.answers[0]
		wi.answers = wi.answers[1:]
		if s.kind == reply {
			if a.num == w.robbed[s.who] && a.us > w.robbedAt[s.who] && a.what != looks {
				w.robbed[s.who] = 0
			}
			w.clients[s.who].answered(w, a.command, a.reply, a.us)
		} else {
			w.clients[s.who].unknown(w, a.command)
		}
	case giveUp:
		c := wi.cmds[0]
		wi.cmds = wi.cmds[1:]
		w.late = append(w.late, lateCommand{s.who, c})
		w.clients[s.who].unknown(w, c)
	case message, loseMessage:
		p := wi.parcels[0]
		wi.parcels = wi.parcels[1:]
		if s.kind == message {
			w.clients[s.who].hear(w, p)
		}
	case own, leisure:
		w.clients[s.who].act(w, s.arg)
	case stop:
		wi.state = stopped
	case resume:
		wi.state = alive
	case die, vanish:
		wi.state = map[stepKind]state{die: dead, vanish: vanished}[s.kind]
		wi.answers, wi.parcels = nil, nil
		w.taints |= died
	case remove, force:
		w.evict(s.kind, wo.runs)
	case pass:
		w.redis.SetMicros(w.nextTime() * 1000)
	}
}

// execute runs a command of a client on Redis, a second time to see whether that changes anything, and puts the
// answer on the wire, if anybody waits for that.
func (w *world) execute(who int8, c *command, wo *worker, chance int8, awaited bool) {
	before := &world{set: w.set, redis: w.redis.Copy()}
	r, known := w.run(wo.runs, &c.Command, chance)
	if late := !awaited && strings.HasPrefix(r.Text, "LATE "); r.Kind == memredis.Error && !late {
		w.fail(fmt.Sprintf("Redis answers %s with %v", w.clients[who].sends(c), r))
	}
	if !known && !c.foreign && wo.firstOfItsKind(before, w, c) {
		w.runAgain(who, c, r, wo.runs, chance)
	}
	if w.judge != nil {
		if what := w.judge.ran(w, who, c, before); what != "" {
			w.fail(what)
		}
	}
	w.deliver()
	wi := &w.wires[who]
	if awaited && (wi.state == alive || wi.state == stopped) {
		wi.answers = append(slices.Clip(wi.answers), answer{c, w.redis.Micros(), r})
	}
}

// runAgain runs a command a second time, on a copy, to see whether that changes anything.
func (w *world) runAgain(who int8, c *command, first memredis.Reply, rs *runs, chance int8) {
	again := world{set: w.set, redis: w.redis.Copy(), clients: w.clients, wires: w.wires}
	second, _ := again.run(rs, &c.Command, chance)
	same := w.redis.Equal(&again.redis) && w.set.sameTwice(c, first, second, len(w.redis.Published) > 0)
	if !same && !w.goesOn(c, first) {
		w.fail(fmt.Sprintf("a second run of %s is not as the first: %v, then %v; from\n%s\nto\n%s",
			w.clients[who].sends(c), first, second, dump(&w.redis), dump(&again.redis)))
	}
}

// goesOn reports whether an attempt was refused although the lock is free: it is left to another for a moment, or the
// command is to be sent again. A second run may find that this is over.
func (w *world) goesOn(c *command, r memredis.Reply) bool {
	return c.what == acquires && r.Kind == memredis.Array && r.Elems[0].Int == 0 && w.set.free(w)
}

// evict deletes the lock, or forces its owners out.
func (w *world) evict(how stepKind, rs *runs) {
	w.taints |= evicted
	owners := w.set.owners(w)
	w.redis.SetMicros(w.redis.Micros() + 1)
	for _, o := range owners {
		if who, num, ok := claimOf(o); ok && who < len(w.clients) {
			w.robbed[who], w.robbedAt[who] = num, w.redis.Micros()
		}
	}
	if how == remove {
		w.redis.Delete(w.set.key)
		return
	}
	c := w.set.force(owners)
	if r, _ := w.run(rs, &c, 0); r.Kind == memredis.Error {
		w.fail(fmt.Sprintf("force_unlock.lua: %v", r))
	}
	w.deliver()
}
