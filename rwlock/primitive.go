package rwlock

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/rlock"
)

//go:embed lua/alive.lua
var aliveLua string

//go:embed lua/acquire_read.lua
var acquireReadLua string

//go:embed lua/acquire_write.lua
var acquireWriteLua string

//go:embed lua/release_read.lua
var releaseReadLua string

//go:embed lua/release_write.lua
var releaseWriteLua string

//go:embed lua/extend_read.lua
var extendReadLua string

//go:embed lua/extend_write.lua
var extendWriteLua string

//go:embed lua/transfer_write.lua
var transferWriteLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/force_unlock.lua
var forceUnlockLua string

//go:embed lua/state.lua
var stateLua string

var (
	acquireReadScript  = rlock.NewScript(acquireReadLua)
	acquireWriteScript = rlock.NewScript(withAlive(acquireWriteLua))
	releaseReadScript  = rlock.NewScript(withAlive(releaseReadLua))
	releaseWriteScript = rlock.NewScript(releaseWriteLua)
	extendReadScript   = rlock.NewScript(extendReadLua)
	extendWriteScript  = rlock.NewScript(extendWriteLua)
	transferScript     = rlock.NewScript(transferWriteLua)
	renewScript        = rlock.NewScript(renewLua)
	forceUnlockScript  = rlock.NewScript(forceUnlockLua)
	stateScript        = rlock.NewScript(stateLua)
)

// withAlive puts alive.lua where a script includes it.
func withAlive(src string) string {
	return strings.Replace(src, "-- include alive.lua\n", aliveLua, 1)
}

// The sides, as a tenure tells them apart.
const (
	readPart  = 0
	writePart = 1
)

// names are what both sides of one lock share.
type names struct {
	rlock.Names
	channel string
	readers string // key of our readers' expiries
	writers string // key of the marks of waiting writers
	holds   string // what the keys of an owner's ids begin with
	timeout string // what the names of readers' timeout keys begin with
	markFor string // ARGV[6] of acquire_write.lua, for who waits
}

func newNames(n rlock.Names, floor time.Duration) *names {
	return &names{
		Names: n, channel: n.Prefixed("redisson_rwlock"),
		readers: n.Prefixed("relock_readers"), writers: n.Prefixed("relock_writers"),
		holds: n.Prefixed("relock_holds") + ":", timeout: n.Suffixed(""),
		// A waiting writer looks again at least every PollFloor. Twice that, so that his
		// mark is never over before.
		markFor: itoa(2 * millis(floor)),
	}
}

// Channel is Redisson's: "redisson_rwlock:{name}".
func (n *names) Channel() string { return n.channel }

// Renew is renew.lua, for both sides.
func (n *names) Renew() *rlock.Script { return renewScript }

// timeouts appends the names of an owner's timeout keys first to last.
func (n *names) timeouts(keys []string, owner string, first, last int) []string {
	for i := first; i <= last; i++ {
		keys = append(keys, n.timeout+owner+":rwlock_timeout:"+strconv.Itoa(i))
	}
	return keys
}

// state is state.lua.
func (n *names) state() rlock.Command {
	return rlock.Command{Script: stateScript, Keys: []string{n.Key(), n.readers}}
}

// forceUnlock is force_unlock.lua.
func (n *names) forceUnlock(sessionChannel string) rlock.Command {
	return rlock.Command{
		Script: forceUnlockScript, Keys: []string{n.Key(), n.readers, n.writers},
		Args: []string{n.channel, n.Publish(), sessionChannel},
	}
}

// readSide is the Primitive of readers.
type readSide struct{ *names }

// Traits: readers share, and each of their holds has an id.
func (readSide) Traits() rlock.Traits { return rlock.Traits{ByID: true, Shares: true} }

// Part is that of readers.
func (readSide) Part() int { return readPart }

// Acquire is acquire_read.lua.
func (r readSide) Acquire(op *rlock.Op) rlock.Command {
	keys := r.timeouts([]string{r.Key(), r.readers, r.writers, r.holds + op.Owner}, op.Owner, op.Holds+1, op.Holds+1)
	if op.Holds > 0 {
		keys = r.timeouts(keys, op.Owner, 1, 1)
	}
	return rlock.Command{
		Script: acquireReadScript,
		Keys:   keys,
		Args:   []string{op.Owner, itoa(millis(op.Lease)), strconv.Itoa(op.Holds), strconv.Itoa(op.Other), op.ID},
	}
}

// Release is release_read.lua. The timeout keys are all that this session may have set:
// the releases of an owner may come in any order, and the last has to take the rest along.
func (r readSide) Release(op *rlock.Op) rlock.Command {
	return rlock.Command{
		Script: releaseReadScript,
		Keys:   r.timeouts([]string{r.Key(), r.readers, r.writers, r.holds + op.Owner}, op.Owner, 1, op.Holds+len(op.Ends)),
		Args:   r.releaseArgs(op),
	}
}

// releaseArgs are those of both release scripts.
func (n *names) releaseArgs(op *rlock.Op) []string {
	args := []string{
		op.Owner, n.channel, n.Publish(),
		strconv.Itoa(op.Holds), itoa(millis(op.Keep)), strconv.Itoa(op.Other), strconv.Itoa(len(op.Ends)),
	}
	return slices.Concat(args, op.Ends, op.IDs, op.OtherIDs)
}

// extendArgs are those of both extend scripts.
func extendArgs(op *rlock.Op) []string {
	return append([]string{op.Owner, itoa(millis(op.Lease)), strconv.Itoa(op.Holds)}, op.IDs...)
}

// Extend is extend_read.lua. Of owners that others share the first timeout key is
// enough: one that lives speaks for all.
func (r readSide) Extend(op *rlock.Op) rlock.Command {
	return rlock.Command{
		Script: extendReadScript,
		Keys:   r.timeouts([]string{r.Key(), r.readers, r.holds + op.Owner}, op.Owner, 1, max(1, op.Holds)),
		Args:   extendArgs(op),
	}
}

// RenewArgs are the lock, the readers and what goes along with a reader. While a slot of
// a Cluster moves (byID is false) it is the first two, without which a reader would not
// be safe.
func (r readSide) RenewArgs(owner string, holds int, byID bool) (keys, args []string) {
	keys = []string{r.Key(), r.readers}
	if byID {
		keys = r.timeouts(append(keys, r.holds+owner), owner, 1, holds)
	}
	return keys, []string{"r" + strconv.Itoa(len(keys)) + ":" + owner}
}

// writeSide is the Primitive of writers.
type writeSide struct{ *names }

// Traits: a writer is alone, each of its holds has an id, and one that waits is known to
// readers by a mark.
func (writeSide) Traits() rlock.Traits {
	return rlock.Traits{Exclusive: true, ByID: true, Marks: true, HandsOver: true}
}

// Part is that of writers.
func (writeSide) Part() int { return writePart }

// Acquire is acquire_write.lua.
func (w writeSide) Acquire(op *rlock.Op) rlock.Command {
	mark := "0"
	if op.Wait {
		mark = w.markFor
	}
	return rlock.Command{
		Script: acquireWriteScript,
		Keys:   []string{w.Key(), w.readers, w.writers, w.holds + op.Owner},
		Args:   []string{op.Owner, itoa(millis(op.Lease)), strconv.Itoa(op.Holds), strconv.Itoa(op.Other), op.ID, mark, w.timeout},
	}
}

// Never is what acquire_write.lua refuses for good.
func (writeSide) Never(code int64) error {
	if code != 1 {
		return fmt.Errorf("rwlock: unexpected reply: refused with code %d", code)
	}
	return fmt.Errorf("%w: unlock it first, or take the write side first and then the read side", ErrUpgrade)
}

// Release is release_write.lua.
func (w writeSide) Release(op *rlock.Op) rlock.Command {
	return rlock.Command{
		Script: releaseWriteScript,
		Keys:   w.timeouts([]string{w.Key(), w.readers, w.writers, w.holds + op.Owner}, op.Owner, 1, 1),
		Args:   w.releaseArgs(op),
	}
}

// Extend is extend_write.lua.
func (w writeSide) Extend(op *rlock.Op) rlock.Command {
	return rlock.Command{
		Script: extendWriteScript,
		Keys:   []string{w.Key(), w.readers, w.holds + op.Owner},
		Args:   extendArgs(op),
	}
}

// Transfer is transfer_write.lua.
func (w writeSide) Transfer(from, to rlock.Entry, lease time.Duration) rlock.Command {
	return rlock.Command{
		Script: transferScript,
		Keys:   []string{w.Key(), w.writers, w.holds + from.Owner, w.holds + to.Owner},
		Args:   []string{from.Owner, from.ID, to.Owner, to.ID, itoa(millis(lease)), w.channel, w.Listeners()},
	}
}

// RenewArgs are the lock and the ids that go along with it.
func (w writeSide) RenewArgs(owner string, _ int, byID bool) (keys, args []string) {
	keys = []string{w.Key()}
	if byID {
		keys = append(keys, w.holds+owner)
	}
	return keys, []string{"w" + strconv.Itoa(len(keys)) + ":" + owner + ":write"}
}

// millis rounds up: a lease in Redis is never shorter than what was asked for.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
