package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"relock/internal/script"
)

// An account is what may stand in Redis under a claim's owner, beside the first hold of a
// private owner, which has no id unless its kind is ByID. An id is in the account from before
// the command is sent that brings it to Redis until it is confirmed that it is not there.
// It is guarded by the lock's mutex.
type account struct {
	owner string      // of a named claim
	ids   [2][]string // of holds, by side
	// ending are the ids whose end was sent and is not confirmed. They are no longer among the
	// ids, so that each is ended by one command, and "not there" means that it was lost. The
	// last release names them too.
	ending [2][]string
	prims  [2]Primitive // which primitive each side was taken with; nil: never taken
	sides  int          // counts the changes of what the sides have
	byIDs  bool         // the key of the ids may have been made
	// holds has the id of each hold of a named owner that is not unlocked.
	holds map[*Hold]string

	// late are the ids of commands that may bring the end of the lock closer, and were given
	// up without an answer. Before the lock is trusted for longer Redis is told to ignore them.
	late []string

	registered bool // an attempt may have left a mark of a waiter
	// strays: a nested command of this side was given up without an answer, and may still
	// come; the last release of a private owner looks there too.
	strays [2]bool

	reservation

	stands time.Duration // of an exposed claim: until when Redis may keep the lock

	owing int // lost sections that are not unlocked yet

	// busy: a command that changes the account is on its way. Others wait for free, which is
	// closed when it is answered or given up.
	busy bool
	free chan struct{}
}

// A reservation is of fencing tokens: the next one to be given out, and how many are left.
// reserved is the least number that an attempt ever asked for.
type reservation struct {
	token    int64
	tokens   int
	reserved int
}

// account returns c.more, made if need be.
func (c *claim) account() *account {
	if c.more == nil {
		c.more = new(account)
	}
	return c.more
}

// waitIdle returns true with the lock's mutex held and no command under way, or false, without
// the mutex, when ctx ends first.
func (c *claim) waitIdle(ctx context.Context) bool {
	l := c.lock
	for c.more != nil && c.more.busy {
		if c.more.free == nil {
			c.more.free = make(chan struct{})
		}
		free := c.more.free
		l.unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return false
		}
		l.mu.Lock()
	}
	return true
}

// commandDone ends the command that made the account busy.
func (c *claim) commandDone() {
	c.more.busy = false
	if c.more.free != nil {
		close(c.more.free)
		c.more.free = nil
	}
}

// told returns how many holds of a side Redis counts for the claim at most.
func (c *claim) told(side int) int {
	n := 0
	if k := c.prim.Kind(); c.num != 0 && !k.ByID && k.Side == side {
		n = 1
	}
	if c.more != nil {
		n += len(c.more.ids[side])
	}
	return n
}

// sidesOf returns the primitive with which each side was taken.
func (c *claim) sidesOf() (prims [2]Primitive) {
	if c.more != nil {
		prims = c.more.prims
	}
	prims[c.prim.Kind().Side] = c.prim
	return prims
}

// A releaseCommand ends what may stand of one side of a claim.
type releaseCommand struct {
	script.Command
	known bool // a hold stands there, unless it was lost
}

// releases returns the commands that end all that may stand of the claim. They need no earlier
// answer, since they name all of it.
func (c *claim) releases(cmds []releaseCommand) []releaseCommand {
	if c.more == nil { // a private claim with one hold, which has no id
		op := Op{Owner: c.ownerID(), N: int(c.n), All: true, Private: true}
		return append(cmds, releaseCommand{c.prim.Release(&op), true})
	}
	m := c.more
	for side, p := range c.sidesOf() {
		known := c.told(side) > 0
		// Beside the holds that are told Redis may have some whose end is not confirmed, some
		// that may come late, or the mark of a waiter.
		if p == nil || !known && len(m.ending[side]) == 0 && !m.strays[side] && !(m.registered && p.Kind().Registers) {
			continue
		}
		op := Op{Owner: c.ownerID(), N: int(c.n), All: c.num != 0, Private: c.num != 0, ByIDs: m.byIDs}
		op.Ends = slices.Concat(m.ids[side], m.ending[side])
		if op.All || len(op.Ends) > 0 {
			cmds = append(cmds, releaseCommand{p.Release(&op), known})
		}
	}
	return cmds
}

// surplus takes the ids of a side off the account that the holds of a section do not need, and
// returns them: they are to be ended. The ids of a private owner are alike, so that any will
// do; those of a named owner may stand in Redis or not, each for itself.
func (c *claim) surplus(side int, x *section) []string {
	m := c.more
	if m == nil {
		return nil
	}
	if c.num == 0 {
		needed := func(id string) bool {
			for _, of := range m.holds {
				if of == id {
					return true
				}
			}
			return false
		}
		slices.SortStableFunc(m.ids[side], func(a, b string) int {
			return strings.Compare(script.Flag(needed(b)), script.Flag(needed(a)))
		})
	}
	n := c.told(side) - int(x.live[side])
	if x.more != nil {
		n -= int(x.more.spent[side] + x.more.entering[side])
	}
	if n = min(n, len(m.ids[side])); n <= 0 {
		return nil
	}
	stay := len(m.ids[side]) - n
	ends := slices.Clone(m.ids[side][stay:])
	m.ids[side] = m.ids[side][:stay]
	m.ending[side] = append(m.ending[side], ends...)
	m.sides++
	return ends
}

// ended takes ids off the account that are confirmed not to stand.
func (c *claim) ended(side int, ids []string) {
	confirmed := func(id string) bool { return slices.Contains(ids, id) }
	c.more.ids[side] = slices.DeleteFunc(c.more.ids[side], confirmed)
	c.more.ending[side] = slices.DeleteFunc(c.more.ending[side], confirmed)
	c.more.sides++
}

// partial returns the command that ends holds of one side while others stay.
func (c *claim) partial(side int, ends []string, keep time.Duration) script.Command {
	m := c.more
	op := Op{Owner: c.ownerID(), N: int(c.n), Ends: ends, Keep: keep, ByIDs: m.byIDs, Private: c.num != 0}
	op.Held, op.IDs = c.told(side), slices.Clone(m.ids[side])
	op.Other, op.OtherIDs = c.told(1-side), slices.Clone(m.ids[1-side])
	return c.sidesOf()[side].Release(&op)
}

// draw returns the next fencing token of the claim; 0 if there is none.
func (c *claim) draw() int64 {
	if c.more == nil || c.more.tokens == 0 {
		return 0
	}
	c.more.tokens--
	c.more.token++
	return c.more.token - 1
}

// reserve notes the highest token that Redis has reserved for the claim: the last of those that
// it surely has.
func (c *claim) reserve(highest int64) {
	if highest > 0 {
		m := c.account()
		m.tokens = max(m.reserved, 1)
		m.token = highest - int64(m.tokens) + 1
	}
}

// over returns when the lock is over in Redis at the latest, should nothing be heard of it any
// more: a renewal may just be under way.
func (c *claim) overAt(now time.Duration) time.Duration {
	at := max(now+c.lock.s.cfg.Lease, c.trust+time.Second)
	if c.more != nil {
		at = max(at, c.more.stands+time.Second)
	}
	return at
}
