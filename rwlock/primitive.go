package rwlock

import (
	"embed"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
	"relock/rlock/lua"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	acquireReadScript  = script.Load(luaFiles, "lua/acquire_read.lua")
	acquireWriteScript = script.Load(luaFiles, "lua/acquire_write.lua")
	releaseReadScript  = script.Load(luaFiles, "lua/release_read.lua")
	releaseWriteScript = script.Load(luaFiles, "lua/release_write.lua")
	extendScript       = script.Load(luaFiles, "lua/extend.lua")
	leaveWriteScript   = script.Load(luaFiles, "lua/leave_write.lua")
	renewScript        = script.Load(luaFiles, "lua/renew.lua")
	forceUnlockScript  = script.Load(lua.Files, "force_unlock.lua")
	waitersScript      = script.Load(lua.Files, "waiters.lua")
	stateScript        = script.Load(luaFiles, "lua/state.lua")
)

// readKind is that of readers, who share, and stand in the line of the writers.
var readKind = kind.Kind{Family: "rw", Name: "read", Side: 0, Shares: true, Lines: true, Sort: waiting.OfReaders}

// names are what both sides of one lock share.
type names struct {
	lock      keyname.Names
	pollFloor time.Duration
	texts     atomic.Pointer[texts]
}

// texts are names that are built when a command first needs them.
type texts struct {
	channel string
	readers string // key of our readers' expiries
	line    string // key of the line
	ids     string // what the key of an owner's ids begins with
	timeout string // what the names of readers' timeout keys begin with
}

// newSides returns the primitives of both sides. A waiting writer looks again at least
// every pollFloor.
func newSides(n keyname.Names, pollFloor time.Duration) (read *readSide, write *writeSide) {
	both := &names{lock: n, pollFloor: pollFloor}
	return &readSide{both}, &writeSide{both}
}

// Names are those of the lock.
func (n *names) Names() *keyname.Names { return &n.lock }

// Channel is Redisson's: "redisson_rwlock:{name}".
func (n *names) Channel() string { return n.built().channel }

func (n *names) built() *texts {
	t := n.texts.Load()
	if t == nil {
		t = &texts{
			channel: n.lock.Prefixed("redisson_rwlock"),
			readers: n.lock.Prefixed("relock_readers"), line: n.lock.Prefixed(keyname.Line),
			ids: n.lock.OwnersHolds(), timeout: n.lock.Suffixed(""),
		}
		n.texts.Store(t)
	}
	return t
}

func (n *names) readers() string         { return n.built().readers }
func (n *names) line() string            { return n.built().line }
func (n *names) ids(owner string) string { return n.built().ids + owner }
func (n *names) timeout() string         { return n.built().timeout }

// timeouts appends the names of an owner's timeout keys first to last.
func (n *names) timeouts(keys []string, owner string, first, last int) []string {
	for i := first; i <= last; i++ {
		keys = append(keys, n.timeout()+owner+":rwlock_timeout:"+script.Itoa(int64(i)))
	}
	return keys
}

// keys are the lock, the readers and the line, with room for some more.
func (n *names) keys(more int) []string {
	return append(make([]string, 0, 3+more), n.lock.Key(), n.readers(), n.line())
}

// heldArgs appends what an acquisition says of the holds that Redis must know already.
func heldArgs(args []string, op *kind.Op) []string {
	if op.Held == 0 && op.Other == 0 {
		return args
	}
	return append(args, script.Itoa(int64(op.Held)), script.Itoa(int64(op.Other)), op.First)
}

// state is state.lua.
func (n *names) state() script.Command {
	return script.Command{Script: stateScript, Keys: []string{n.lock.Key(), n.readers()}, Args: []string{n.timeout()}}
}

// waiters is waiters.lua of rlock, for [calls.Handle.Waiters].
func (n *names) waiters(from int64) script.Command {
	return script.Command{Script: waitersScript, Keys: []string{n.line()}, Args: []string{script.Itoa(from)}}
}

// forceUnlock is force_unlock.lua of rlock.
func (n *names) forceUnlock(f *kind.Force) script.Command {
	return f.Command(script.Command{
		Script: forceUnlockScript, Keys: n.keys(0),
		Args: []string{n.Channel(), n.lock.Publish, inbox.Prefix, n.lock.Counts, "1"},
	}, n.lock.Prefixed("relock_forced"))
}

// release is a script call with the keys and arguments of ending.lua; line is what a writer says of the line.
func (n *names) release(sc *script.Script, op *kind.Op, timeouts int, line ...string) script.Command {
	keys := n.timeouts(n.keys(1+timeouts), op.Owner, 1, 1)
	if op.ByIDs {
		keys = n.timeouts(append(keys, n.ids(op.Owner)), op.Owner, 2, timeouts)
	}
	args := []string{op.Owner, n.Channel(), n.lock.Publish, n.lock.Counts, inbox.Prefix}
	if !op.All || op.ByIDs || len(line) > 0 || op.Line.Head != "" {
		args = n.endingArgs(args, op, line)
	}
	return script.Command{Script: sc, Keys: keys, Args: args}
}

// endingArgs appends which holds end and which stay.
func (n *names) endingArgs(args []string, op *kind.Op, line []string) []string {
	owner := "0"
	switch {
	case op.All:
		owner = "2"
	case op.Private:
		owner = "1"
	}
	args = append(args, owner, script.Millis(op.Keep),
		script.Itoa(int64(op.Other)), script.Itoa(int64(len(op.Ends))), script.Itoa(int64(len(op.IDs))))
	return slices.Concat(args, line, op.Ends, op.IDs, op.OtherIDs)
}

// whose is "1" for a private owner; else what the names of its timeout keys begin with, for Redisson may share it.
func (n *names) whose(op *kind.Op) string {
	if op.Private {
		return "1"
	}
	return n.timeout() + op.Owner + ":rwlock_timeout:"
}

// extend is extend.lua for one side.
func (n *names) extend(op *kind.Op, side string, timeouts int) script.Command {
	keys := append(make([]string, 0, 3+timeouts), n.lock.Key(), n.readers(), n.ids(op.Owner))
	args := []string{op.Owner, script.Millis(op.Lease), side, n.whose(op), script.Flag(op.Away),
		op.ID, script.Itoa(int64(len(op.Void)))}
	return script.Command{
		Script: extendScript, Keys: n.timeouts(keys, op.Owner, 1, timeouts),
		Args: append(append(args, op.Void...), op.IDs...),
	}
}

// readSide is the primitive of readers.
type readSide struct{ *names }

var _ interface {
	kind.Leased
	kind.Blocker
	kind.Liner
} = (*readSide)(nil)

// Kind is that of readers.
func (*readSide) Kind() *kind.Kind { return &readKind }

// Acquire is acquire_read.lua.
func (r *readSide) Acquire(op *kind.Op) script.Command {
	keys := r.timeouts(r.keys(3), op.Owner, op.Held+1, op.Held+1)
	args := append(make([]string, 0, 12), op.Owner, script.Millis(op.Lease+time.Millisecond))
	if op.ID != "" {
		keys, args = append(keys, r.ids(op.Owner)), heldArgs(append(args, op.ID), op)
	}
	if op.Held > 0 {
		keys = r.timeouts(keys, op.Owner, 1, 1)
	}
	if l := &op.Line; l.Session != "" || l.Head != "" {
		args = append(args[:2], op.ID, script.Itoa(int64(op.Held)), script.Itoa(int64(op.Other)), op.First)
		if l.Head != "" {
			args = append(args, readerEntry(l.Head), script.Flag(l.Listens), inbox.Prefix, r.lock.Counts,
				script.Itoa(int64(l.Waited/time.Millisecond)))
			if l.Waiting > 0 {
				args = append(args, script.Itoa(int64(l.Waiting)))
			}
		} else {
			args = append(args, "b", l.Session, script.Millis(l.ComesIn), script.Millis(l.Window))
		}
	}
	return script.Command{Script: acquireReadScript, Keys: keys, Args: args}
}

// Entry is how an entry begins.
func (*readSide) Entry(head string) string { return readerEntry(head) }

// readerEntry turns a plain lock's entry into a reader's, which is called in any case.
func readerEntry(head string) string {
	switch {
	case head == "":
		return ""
	case head[0] == 'n' || head[0] == 'S':
		return "S" + head[1:]
	}
	return "R" + head[1:]
}

// Dismiss takes an entry out of the line.
func (*readSide) Dismiss(n keyname.Names, head, owner string, _ bool) script.Command {
	r, _ := newSides(n, 0)
	return r.Release(&kind.Op{Owner: owner, Line: kind.Line{Head: head}})
}

// Blockers is the writer. A reader that waits behind a writer who waits too has none.
func (r *readSide) Blockers(fields map[string]string) (owners []string) {
	for field := range fields {
		if owner, ok := strings.CutSuffix(field, ":write"); ok {
			owners = append(owners, owner)
		}
	}
	return owners
}

// Release is release_read.lua. The timeout keys are all that this session may have set:
// the releases of an owner may come in any order, and the last has to take the rest along.
// Those of all that a private owner has, the script knows; its first hold has no id.
func (r *readSide) Release(op *kind.Op) script.Command {
	timeouts := op.Held + len(op.Ends)
	if op.All {
		timeouts++
	}
	cmd := r.release(releaseReadScript, op, max(1, timeouts))
	if len(cmd.Args) > 5 {
		cmd.Args[5] += readerEntry(op.Line.Head)
	}
	return cmd
}

// Extend is extend.lua. Of named owners the first timeout key is enough: one that lives
// speaks for all.
func (r *readSide) Extend(op *kind.Op) script.Command { return r.extend(op, "r", max(1, op.Held)) }

// Renew is renew.lua: it names the lock, the readers and what goes along with a reader. While a slot of
// a Cluster moves it names the first two, without which a reader would not be safe.
func (r *readSide) Renew(op *kind.Op) script.Command {
	keys := []string{r.lock.Key(), r.readers()}
	if !op.FewestKeys {
		keys = r.timeouts(append(keys, r.ids(op.Owner)), op.Owner, 1, op.Held)
	}
	side := "r"
	if !op.Private {
		side = "s"
	}
	return script.Command{Script: renewScript, Keys: keys, Args: []string{side + script.Itoa(int64(len(keys))) + ":" + op.Owner}}
}
