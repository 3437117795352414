package explore

import (
	"relock/internal/kind"
	"relock/internal/script"
)

// A session may lock once more inside of its section: Redis counts another hold of the owner, which has an id. One that
// is asked for twice counts once, and one that comes late, behind the release of all, is none.

// What becomes of the nested hold of a section.
const (
	notNested int8 = iota
	nesting
	nested
	unnesting
	unnested
)

// nestedID is the id of the nested hold: no other one has it.
func (c *locker) nestedID() string { return c.owner(c.num) + "+" }

// nestOp is what the commands of a nested hold say of the claim, which has a hold besides.
func (c *locker) nestOp(num int8) *kind.Op {
	return &kind.Op{Owner: c.owner(num), Private: true, Known: kind.Known{Held: 1}, ByIDs: true}
}

// ownNested lists what it may do about a nested hold, and reports whether it may unlock the outer one.
func (c *locker) ownNested(buf []ownStep) ([]ownStep, bool) {
	switch {
	case !c.nests:
		return buf, true
	case c.nest == notNested:
		return append(buf, ownStep{code: nestLock}), true
	case c.nest == nested:
		return append(buf, ownStep{code: nestUnlock}), false
	}
	return buf, c.nest == unnested
}

func (c *locker) nestLock(w *world) {
	c.nest = nesting
	op := c.nestOp(c.num)
	op.ID, op.Lease = c.nestedID(), ms(w.set.lease)
	w.send(c.who, &command{Command: c.prim.Acquire(op), what: nests, num: c.num})
}

func (c *locker) nestUnlock(w *world) {
	c.nest = unnesting
	op := c.nestOp(c.num)
	op.Ends, op.Keep = []string{c.nestedID()}, ms(w.set.lease)
	w.send(c.who, &command{Command: c.prim.Release(op), what: unnests, num: c.num})
}

// nestAnswered takes in the answer to a command of the nested hold: 0, or less, is that the claim is gone.
func (c *locker) nestAnswered(w *world, m *command, n []int64) {
	switch {
	case m.num != c.num || c.phase != held:
	case n[0] <= 0:
		c.rest()
	case m.what == nests:
		c.nest = nested
		if !m.resent && n[1] != 2 {
			w.fail(c.owner(c.num) + " has a nested hold, and Redis does not count two")
		}
	default:
		c.nest = unnested
		if n[0] != 1 {
			w.fail(c.owner(c.num) + " has left its nested hold, and Redis does not count one")
		}
	}
}

// sameNested compares the replies to two runs of a command of a nested hold: but for changed they are the same.
func sameNested(a, b []int64) bool { return a[0] == b[0] && (a[0] <= 0 || len(a) < 4 || a[1] == b[1]) }

// nestAgain sends a command of the nested hold again, of which there was no answer.
func (c *locker) nestAgain(w *world, m *command) {
	if m.num != c.num || c.phase != held {
		return
	}
	again := *m
	again.resent = true
	w.send(c.who, &again)
}

// renewal is a command that renews the claim.
func (c *locker) renewal(lease string) script.Command {
	cmd := c.prim.Renew(&kind.Op{Owner: c.owner(c.num), N: c.n, Private: true, ByIDs: c.nest != notNested, Known: kind.Known{Held: 1}})
	cmd.Args = append([]string{lease}, cmd.Args...)
	return cmd
}
