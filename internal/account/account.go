package account

import (
	"maps"
	"slices"
	"time"

	"relock/internal/holds"
	"relock/internal/kind"
	"relock/internal/redis"
	"relock/internal/script"
)

// An Account is what may stand in Redis of a claim. All of it is called with the mutex of the claim's lock
// held.
//
// Most claims need none: nil is that of a private owner with one hold, which has no id. What can be asked
// of that too is given the kind of the first hold, or the primitive that it was taken with: Counted,
// Sides, FirstID, Releases; and ByIDs, Keep, MayShorten, Cancel and Cancels. The other methods need an
// account.
type Account struct {
	Owner string                 // if it is named; never changes
	holds map[*holds.Hold]string // of a named owner, the id of each hold that is not unlocked
	sides [2]side
	byIDs bool // the key of the ids may have been made
	// firstHasID: the first hold of a private owner has one.
	firstHasID bool
	// Changes counts the changes of what the sides have.
	Changes int

	// late are the ids of commands without an answer that may shorten the lease when they arrive. The
	// session has Redis ignore them before it trusts the lock for longer.
	late []string

	LostSections int32 // sections that were lost, and are not unlocked yet: their callers may not have noticed
	cancelling   int32 // sections that were closed, and whose contexts are being cancelled
	Leaves       bool  // an inner hold is being released, and no caller waits for that
	Unsent       bool  // another one is to be released when the command under way is answered

	standing
	Tokens
	inflight
}

// standing is until when the lock stands in Redis for other reasons than its holds.
type standing struct {
	Stands  time.Duration // of an exposed claim: until when Redis may keep the lock
	Left    time.Duration // until when a hold that was abandoned leaves the lock standing; 0: there is none
	Cut     time.Duration // when a command that may bring the end closer was last about to be sent; 0: never
	AtLeast time.Duration // until when the lock stands though its last hold was unlocked before; 0: no longer than that
	Opens   bool          // no hold needs a side any more that stands for AtLeast, and holds of the other one stay
}

// A side is what may stand of one side of the lock.
type side struct {
	prim kind.Primitive // which the side was taken with; nil: never taken
	ids  []string       // of holds
	// unconfirmed are the ids whose end was sent and is not confirmed. They are no longer among the
	// ids, so that each is ended by one command, and "not there" means that it was lost. The
	// last release names them too.
	unconfirmed []string
	// unresolved: a nested command was given up without an answer, and may still arrive. So the last
	// release of a private owner names this side too.
	unresolved bool
}

// New returns the account of an owner whose first hold is taken with p; "" is a private one.
func New(p kind.Primitive, owner string) *Account {
	m := &Account{Owner: owner}
	m.sides[p.Kind().Side].prim = p
	return m
}

// private reports whether the owner was made for this claim.
func (m *Account) private() bool { return m == nil || m.Owner == "" }

// Begin notes the id that the first hold is asked for with. The command of a named owner is awaited.
func (m *Account) Begin(k *kind.Kind, id string) {
	m.sides[k.Side].ids = []string{id}
	m.byIDs, m.Busy = true, !m.private()
}

// Counted returns how many holds of a side Redis counts at most, for a claim whose first hold is of
// kind k.
func (m *Account) Counted(k *kind.Kind, side int) int {
	n := 0
	if m != nil {
		n = len(m.sides[side].ids)
	}
	if k.Side == side && (m == nil || m.Owner == "" && !m.firstHasID) {
		n++ // the first one, which has no id
	}
	return n
}

// Sides returns the primitive with which each side was taken; the first hold was taken with p.
func (m *Account) Sides(p kind.Primitive) (prims [2]kind.Primitive) {
	if m != nil {
		return [2]kind.Primitive{m.sides[0].prim, m.sides[1].prim}
	}
	prims[p.Kind().Side] = p
	return prims
}

// FirstID returns the id of the first hold, which is of kind k; "" if it has none.
func (m *Account) FirstID(k *kind.Kind) string {
	if m == nil || len(m.sides[k.Side].ids) == 0 {
		return ""
	}
	return m.sides[k.Side].ids[0]
}

// ByIDs reports whether the key of the ids may have been made.
func (m *Account) ByIDs() bool { return m != nil && m.byIDs }

// Keep notes the id of a hold of a named owner, until it is unlocked.
func (m *Account) Keep(h *holds.Hold, id string) {
	if m.private() {
		return
	}
	if m.holds == nil {
		m.holds = map[*holds.Hold]string{}
	}
	m.holds[h] = id
}

// Surplus takes ids of a side off the account until Redis counts no more holds than are needed, and returns them: they
// are to be ended. The first hold is of kind k.
func (m *Account) Surplus(k *kind.Kind, side, needed int) (ends []string) {
	of := &m.sides[side]
	n := min(m.Counted(k, side)-needed, len(of.ids))
	if n <= 0 {
		return nil
	}
	if !m.private() { // those stay that its holds have
		maps.DeleteFunc(m.holds, func(h *holds.Hold, _ string) bool { return h.Done })
		held := slices.Collect(maps.Values(m.holds))
		has := func(id string) bool { return slices.Contains(held, id) }
		free := slices.DeleteFunc(slices.Clone(of.ids), has)
		of.ids = append(slices.DeleteFunc(of.ids, func(id string) bool { return !has(id) }), free...)
	}
	stay := len(of.ids) - n
	ends = slices.Clone(of.ids[stay:])
	of.ids = of.ids[:stay]
	of.unconfirmed = append(of.unconfirmed, ends...)
	m.Changes++
	return ends
}

// MarkUnresolved notes that a nested hold of a side may come about although its command was given up. The
// last release names that side.
func (m *Account) MarkUnresolved(side int) { m.sides[side].unresolved = true }

// EndUnresolved takes the id of a nested hold whose command was given up off at once, to be ended by itself: an Unlock that ends one of the
// ids takes "not there" for a loss.
func (m *Account) EndUnresolved(side int, id string) (ends []string) {
	of := &m.sides[side]
	of.ids = slices.DeleteFunc(of.ids, func(other string) bool { return other == id })
	of.unconfirmed = append(of.unconfirmed, id)
	m.Changes++
	return []string{id}
}

// Ended takes ids off that are confirmed not to stand.
func (m *Account) Ended(side int, ids []string) {
	confirmed := func(id string) bool { return slices.Contains(ids, id) }
	of := &m.sides[side]
	of.ids = slices.DeleteFunc(of.ids, confirmed)
	of.unconfirmed = slices.DeleteFunc(of.unconfirmed, confirmed)
	m.Changes++
}

// Nest completes op, a nested command of p that is about to be sent and awaited, for a claim whose first
// hold is of kind k. It reports whether that takes a side for the first time.
func (m *Account) Nest(k *kind.Kind, p kind.Primitive, op *kind.Op) (newSide bool) {
	at := p.Kind().Side
	op.Known = kind.Known{Held: m.Counted(k, at), Other: m.Counted(k, 1-at)}
	op.ByIDs = true
	if op.First != "" && !m.firstHasID {
		m.firstHasID, m.sides[k.Side].ids = true, []string{op.First}
	} else if op.First = ""; m.firstHasID && len(m.sides[k.Side].ids) > 0 {
		op.First = m.sides[k.Side].ids[0] // an earlier command that was to name it may not have run
	}
	of := &m.sides[at]
	newSide = of.prim == nil
	if newSide {
		m.Changes++
	}
	if at != k.Side {
		of.prim = p
	}
	of.ids = append(of.ids, op.ID)
	m.byIDs, m.Busy = true, true
	return newSide
}

// Extension completes op, an extension of one side that is about to be sent and awaited, for a claim whose
// first hold is of kind k.
func (m *Account) Extension(k *kind.Kind, side int, op *kind.Op) {
	op.Held, op.Void, op.Private = m.Counted(k, side), slices.Clone(m.late), m.private()
	if !op.Private {
		op.IDs = slices.Clone(m.sides[side].ids)
	}
	m.Busy = true
	m.byIDs = m.byIDs || len(op.Void) > 0
	op.ByIDs = m.byIDs
}

// Extended notes the outcome of an extension. Redis ignores the commands that the extension named from now
// on. A copy of the extension itself may still arrive.
func (m *Account) Extended(op *kind.Op, r *redis.Extended) {
	if r.Voided {
		m.late = slices.DeleteFunc(m.late, func(id string) bool { return slices.Contains(op.Void, id) })
	}
	if r.Late {
		m.late = append(m.late, op.ID)
	}
}

// Shortening notes that the command which ends those ids was given up, and may bring the end of the lock
// closer when it arrives. The scripts know it by the first of the ids.
func (m *Account) Shortening(ends []string) { m.late = append(m.late, ends[0]) }

// Shortened takes back what Shortening has noted: the command is answered.
func (m *Account) Shortened(ends []string) {
	m.late = slices.DeleteFunc(m.late, func(id string) bool { return id == ends[0] })
}

// MayShorten reports whether a command may still arrive that brings the end of the lock closer.
func (m *Account) MayShorten() bool { return m != nil && len(m.late) > 0 }

// Cancel counts one section more, or one less with -1, that was closed and whose contexts are being
// cancelled. Without an account there is no other section that could go on with the claim meanwhile.
func (m *Account) Cancel(n int32) {
	if m != nil {
		m.cancelling += n
	}
}

// Cancels reports whether there is such a section: the claim stands until its contexts have ended.
func (m *Account) Cancels() bool { return m != nil && m.cancelling > 0 }

// Releases appends the commands that end all that may stand, each being op with what one side has; the
// first hold was taken with p. They need no earlier answer, since they name all of it. With an op.Lease they leave
// standing for so long what can be left.
func (m *Account) Releases(cmds []redis.ReleaseCommand, p kind.Primitive, op kind.Op) []redis.ReleaseCommand {
	op.Private = m == nil || m.Owner == ""
	op.All = op.Private
	if m == nil {
		return append(cmds, redis.ReleaseCommand{Command: p.Release(&op), Known: true})
	}
	op.ByIDs = m.byIDs
	for side, of := range m.sides {
		known := m.Counted(p.Kind(), side) > 0
		// Beside the holds that are counted Redis may have some whose end is not confirmed, and some that
		// may come late.
		if of.prim == nil || !known && len(of.unconfirmed) == 0 && !of.unresolved {
			continue
		}
		if op.Ends = slices.Concat(of.ids, of.unconfirmed); op.All || len(op.Ends) > 0 {
			cmds = append(cmds, redis.ReleaseCommand{Command: release(of.prim, &op), Known: known})
		}
	}
	return cmds
}

// release is the command that ends what stands of a side, or leaves it standing for op.Lease.
func release(p kind.Primitive, op *kind.Op) script.Command {
	if l, ok := p.(kind.Leaver); ok && op.Lease > 0 {
		return l.Leave(op)
	}
	return p.Release(op)
}

// Partial returns the command, which is op completed, that ends holds of one side while others stay, for
// which keep is the least time to live; 0: leave the TTL. The first hold is of kind k.
func (m *Account) Partial(k *kind.Kind, side int, ends []string, keep time.Duration, op kind.Op) script.Command {
	of, other := &m.sides[side], &m.sides[1-side]
	op.Ends, op.Keep, op.ByIDs, op.Private = ends, keep, m.byIDs, m.private()
	op.Held, op.IDs = m.Counted(k, side), slices.Clone(of.ids)
	op.Other, op.OtherIDs = m.Counted(k, 1-side), slices.Clone(other.ids)
	return of.prim.Release(&op)
}
