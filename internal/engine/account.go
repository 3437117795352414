package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"relock/internal/resend"
	"relock/internal/script"
)

// An account is what may stand in Redis under a claim's owner, beside the first hold of a
// private owner, which has no id unless its kind is ByID. It is guarded by the lock's mutex.
type account struct {
	namedOwner
	sides   [2]sideAccount
	changes int  // counts the changes of what the sides have
	byIDs   bool // the key of the ids may have been made

	// late are the ids of commands that may bring the end of the lock closer, and were given
	// up without an answer. Before the lock is trusted for longer Redis is told to ignore them.
	late []string

	registered bool // an attempt may have left a mark of a waiter

	reservation

	stands time.Duration // of an exposed claim: until when Redis may keep the lock

	owing int           // lost sections that are not unlocked yet: they may just be noticing
	left  time.Duration // until when a hold that was abandoned leaves the lock standing; 0: there is none

	// busy: a command that changes the account is on its way. Others wait for free, which is
	// closed when it is answered or given up; of a claim that asks also at each refusal.
	busy bool
	free chan struct{}
}

// A sideAccount is what may stand of one side. An id is in it from before the command is sent that
// brings it to Redis until it is confirmed that it is not there.
type sideAccount struct {
	prim Primitive // which the side was taken with; nil: never taken
	ids  []string  // of holds
	// ending are the ids whose end was sent and is not confirmed. They are no longer among the
	// ids, so that each is ended by one command, and "not there" means that it was lost. The
	// last release names them too.
	ending []string
	// stray: a nested command was given up without an answer, and may still come; the last release
	// of a private owner looks here too.
	stray bool
}

// A namedOwner is what the account has of an owner that the caller has named. Other sessions may
// hold under the same name, so that each hold is told from the others by its id. Those of a private
// owner have ids too, but for the first, since a command that is sent twice must count once; but
// they are alike, and which of them stands for which hold does not matter.
type namedOwner struct {
	owner string
	holds map[*Hold]string // the id of each hold that is not unlocked
}

// A reservation is of fencing tokens: the next one to be given out, and how many are left.
// reserved is the least number that an attempt ever asked for.
type reservation struct {
	token    int64
	tokens   int
	reserved int
}

// needAccount returns c.account, made if need be.
func (c *claim) needAccount() *account {
	if c.account == nil {
		c.account = new(account)
		c.account.sides[c.kind.Side].prim = c.prim
	}
	return c.account
}

// awaitAnswer waits until no command of the claim is under way, and returns false if ctx ends first.
// A claim that asks counts as having one under way between two attempts too, but not for a TryLock
// (tries), which would wait for a release. The lock's mutex must be held; it is released meanwhile and
// held again at the end.
func (c *claim) awaitAnswer(ctx context.Context, tries bool) bool {
	l := c.lock
	for c.account != nil && c.account.busy && !(tries && c.state == asking && c.flight != flying) {
		if c.account.free == nil {
			c.account.free = make(chan struct{})
		}
		free := c.account.free
		l.unlock()
		select {
		case <-free:
			l.mu.Lock()
		case <-ctx.Done():
			l.mu.Lock()
			return false
		}
	}
	return true
}

// commandDone ends the command that made the account busy.
func (c *claim) commandDone() {
	c.account.busy = false
	c.account.callUp()
}

// callUp has those look again that wait for the account.
func (m *account) callUp() {
	if m.free != nil {
		close(m.free)
		m.free = nil
	}
}

// counted returns how many holds of a side Redis counts for the claim at most.
func (c *claim) counted(side int) int {
	n := 0
	if k := c.kind; c.num != 0 && !k.ByID && k.Side == side {
		n = 1
	}
	if c.account != nil {
		n += len(c.account.sides[side].ids)
	}
	return n
}

// sidesOf returns the primitive with which each side was taken.
func (c *claim) sidesOf() (prims [2]Primitive) {
	if c.account != nil {
		return [2]Primitive{c.account.sides[0].prim, c.account.sides[1].prim}
	}
	prims[c.kind.Side] = c.prim
	return prims
}

// firstID returns the id of the claim's first hold; "" if it has none.
func (c *claim) firstID() string {
	if c.account == nil {
		return ""
	}
	if ids := c.account.sides[c.kind.Side].ids; len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// releases returns the commands that end all that may stand of the claim. They need no earlier
// answer, since they name all of it.
func (c *claim) releases(cmds []resend.ReleaseCommand) []resend.ReleaseCommand {
	if c.account == nil { // a private claim with one hold, which has no id
		op := Op{Owner: c.ownerID(), N: int(c.n), All: true, Private: true}
		return append(cmds, resend.ReleaseCommand{Command: c.prim.Release(&op), Known: true})
	}
	m := c.account
	for side, of := range m.sides {
		known := c.counted(side) > 0
		// Beside the holds that are counted Redis may have some whose end is not confirmed, some
		// that may come late, or the mark of a waiter.
		if of.prim == nil || !known && len(of.ending) == 0 && !of.stray && !(m.registered && of.prim.Kind().Registers) {
			continue
		}
		op := Op{Owner: c.ownerID(), N: int(c.n), All: c.num != 0, Private: c.num != 0, ByIDs: m.byIDs}
		op.Ends = slices.Concat(of.ids, of.ending)
		if op.All || len(op.Ends) > 0 {
			cmds = append(cmds, resend.ReleaseCommand{Command: of.prim.Release(&op), Known: known})
		}
	}
	return cmds
}

// surplus takes the ids of a side off the account that the holds of a section do not need, and
// returns them: they are to be ended.
func (c *claim) surplus(side int, x *section) []string {
	of := &c.account.sides[side]
	n := c.counted(side) - int(x.live[side])
	if x.nesting != nil {
		n -= int(x.nesting.spent[side] + x.nesting.entering[side])
	}
	if n = min(n, len(of.ids)); n <= 0 {
		return nil
	}
	if c.num == 0 { // those stay that its holds have
		needed := slices.Collect(maps.Values(c.account.holds))
		has := func(id string) bool { return slices.Contains(needed, id) }
		free := slices.DeleteFunc(slices.Clone(of.ids), has)
		of.ids = append(slices.DeleteFunc(of.ids, func(id string) bool { return !has(id) }), free...)
	}
	stay := len(of.ids) - n
	ends := slices.Clone(of.ids[stay:])
	of.ids = of.ids[:stay]
	of.ending = append(of.ending, ends...)
	c.account.changes++
	return ends
}

// ended takes ids off the account that are confirmed not to stand.
func (c *claim) ended(side int, ids []string) {
	confirmed := func(id string) bool { return slices.Contains(ids, id) }
	of := &c.account.sides[side]
	of.ids = slices.DeleteFunc(of.ids, confirmed)
	of.ending = slices.DeleteFunc(of.ending, confirmed)
	c.account.changes++
}

// partial returns the command that ends holds of one side while others stay.
func (c *claim) partial(side int, ends []string, keep time.Duration) script.Command {
	of, other := &c.account.sides[side], &c.account.sides[1-side]
	op := Op{Owner: c.ownerID(), N: int(c.n), Ends: ends, Keep: keep, ByIDs: c.account.byIDs, Private: c.num != 0}
	op.Held, op.IDs = c.counted(side), slices.Clone(of.ids)
	op.Other, op.OtherIDs = c.counted(1-side), slices.Clone(other.ids)
	return of.prim.Release(&op)
}

// draw returns the next fencing token of the claim; 0 if there is none.
func (c *claim) draw() int64 {
	if c.account == nil || c.account.tokens == 0 {
		return 0
	}
	c.account.tokens--
	c.account.token++
	return c.account.token - 1
}

// reserving notes that an attempt will ask for so many tokens, and returns that number.
func (c *claim) reserving(tokens int) int {
	if m := c.needAccount(); m.reserved == 0 || tokens < m.reserved {
		m.reserved = tokens
	}
	return tokens
}

// reserve notes the highest token that Redis has reserved for the claim: the last of those that
// it surely has.
func (c *claim) reserve(highest int64) {
	if highest > 0 {
		m := c.needAccount()
		m.tokens = max(m.reserved, 1)
		m.token = highest - int64(m.tokens) + 1
	}
}

// latestEnd returns when the lock is over in Redis at the latest, should nothing be heard of it any
// more: a renewal may just be under way.
func (c *claim) latestEnd(now time.Duration) time.Duration {
	at := max(now+c.lock.s.cfg.Lease, c.trust+time.Second)
	if c.account != nil {
		at = max(at, c.account.stands+time.Second)
	}
	return at
}
