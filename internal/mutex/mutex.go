// Package mutex is what tells the machine of Redisson's RLock and RFencedLock: a hash of
// owners and their holds, and the scripts of rlock/lua. The plain and the fair Mutex and quorum
// share it.
package mutex

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/rlock/lua"
)

var (
	acquireScript     = script.Load(lua.Files, "acquire.lua")
	releaseScript     = script.Load(lua.Files, "release.lua")
	extendScript      = script.Load(lua.Files, "extend.lua")
	leaveScript       = script.Load(lua.Files, "leave.lua")
	renewScript       = script.Load(lua.Files, "renew.lua")
	renewFencedScript = script.Load(lua.Files, "renew_fenced.lua")
	waitersScript     = script.Load(lua.Files, "waiters.lua")
	stateScript       = script.Load(lua.Files, "state.lua")
	forceUnlockScript = script.Load(lua.Files, "force_unlock.lua")
	lookScript        = script.Load(lua.Files, "look.lua")
)

var (
	plainKind  = kind.Kind{Family: "mutex", Exclusive: true, HandsOver: true, Lines: true}
	fencedKind = kind.Kind{Family: "mutex", Exclusive: true, HandsOver: true, Lines: true, Fenced: true}

	fairKind       = kind.Kind{Family: "fair", Exclusive: true, Lines: true, Fair: true}
	fairFencedKind = kind.Kind{Family: "fair", Exclusive: true, Lines: true, Fair: true, Fenced: true}
)

// Primitive is the lock of one name. It is small, since a session may hold a great many:
// but for the channel and the line, which each release names, nothing derived from the name is kept.
type Primitive struct {
	names keyname.Names
	Fencing
	fair    bool // all callers stand in the line
	channel string
	keys    [2]string // of the lock and of its line, which each command of a waiting caller names
}

var _ interface {
	kind.Leaver
	kind.Blocker
	kind.FairLiner
} = (*Primitive)(nil)

// Fencing says which fencing tokens a lock has.
type Fencing struct {
	Fenced bool          // a claim has some
	Ends   time.Duration // for how long their key outlives the lock; 0: it has no end
}

// New returns the primitive of that name.
func New(n keyname.Names, f Fencing) *Primitive {
	return &Primitive{names: n, Fencing: f, channel: n.Prefixed("redisson_lock__channel"),
		keys: [2]string{n.Key(), n.Prefixed("relock_line1")}}
}

// NewFair returns the primitive of the fair lock of that name.
func NewFair(n keyname.Names, f Fencing) *Primitive {
	p := New(n, f)
	p.fair = true
	return p
}

// Kind: exclusive, and handed over in memory; or fair.
func (p *Primitive) Kind() *kind.Kind {
	switch {
	case p.fair && p.Fenced:
		return &fairFencedKind
	case p.fair:
		return &fairKind
	case p.Fenced:
		return &fencedKind
	default:
		return &plainKind
	}
}

// Names are those of the lock.
func (p *Primitive) Names() *keyname.Names { return &p.names }

// Channel is Redisson's: "redisson_lock__channel:{name}".
func (p *Primitive) Channel() string { return p.channel }

// IDs is the key of the set of ids of holds.
func (p *Primitive) IDs() string { return p.names.Prefixed("relock_holds") }

// Line is the key of the line of sessions that wait.
func (p *Primitive) Line() string { return p.keys[1] }

// Token is the key of the fencing token: "redisson_lock_token:{name}".
func (p *Primitive) Token() string { return p.names.Prefixed("redisson_lock_token") }

// withIDs appends the key of the ids, which is named only if the claim may have made it.
func (p *Primitive) withIDs(keys []string) []string {
	return append(keys[:len(keys):len(keys)], p.IDs())
}

// withToken appends the key of the fencing token to others.
func (p *Primitive) withToken(keys []string) []string {
	return append(keys[:len(keys):len(keys)], p.Token())
}

// Acquire is acquire.lua.
func (p *Primitive) Acquire(op *kind.Op) script.Command {
	if op.Position != nil || op.Line.Head == kind.InTurn || op.Line.Head == kind.Reenter {
		return p.acquireFair(op)
	}
	keys := p.names.Keys[:]
	inLine, head := op.Line.Head != "" || op.Line.Books != "", op.Line.Head
	if op.Line.Books != "" {
		head = "b"
	}
	if inLine {
		keys = p.keys[:]
	}
	if op.ID != "" || op.Tokens > 0 || p.Ends > 0 {
		keys = p.helpers(keys, op)
	}
	args := append(make([]string, 0, 6), op.Owner, script.Millis(op.Lease))
	again := inLine && (op.Line.Books != "" || op.Line.Again || op.Line.Listens || op.Line.Waiting > 0 || op.Line.Tells)
	rest := again || op.ID != "" || op.Tokens > 0 || p.Ends > 0 // else it says nothing
	if inLine || rest {
		args = append(args, head)
	}
	if rest {
		args = append(args, strconv.Itoa(op.Tokens), strconv.Itoa(op.Held), op.ID)
	}
	switch {
	case p.Ends > 0:
		args = append(args, script.Millis(p.Ends))
	case again:
		args = append(args, "")
	}
	if again {
		args = append(args, script.Flag(op.Line.Again), script.Flag(op.Line.Listens),
			p.channel, p.names.Publish, p.names.Counts, inbox.Prefix, strconv.Itoa(op.Line.Waiting))
	}
	switch {
	case op.Line.Books != "":
		args = append(args, op.Line.Books, script.Millis(op.Line.ComesIn), script.Millis(op.Line.Window))
	case op.Line.Tells:
		args = append(args, "1")
	}
	cmd := script.Command{Script: acquireScript, Keys: keys, Args: args}
	if inLine {
		cmd.Fewer = acquireWithoutLine
	}
	return cmd
}

// helpers appends the helper keys that an acquisition needs to others.
func (p *Primitive) helpers(keys []string, op *kind.Op) []string {
	if op.ID != "" {
		keys = p.withIDs(keys)
	}
	if op.Tokens > 0 || p.Ends > 0 {
		keys = p.withToken(keys)
	}
	return keys
}

// acquireFair is acquire.lua for a caller of a fair lock: one that stands in the line, or does not wait. Where
// Redis does not serve lock and line together it waits until it does, for it must not overtake.
func (p *Primitive) acquireFair(op *kind.Op) script.Command {
	head, tokens, ends := op.Line.Head, "", ""
	at := op.Position
	if at != nil {
		head = strings.TrimSuffix(at.Entry, op.Owner)
	} else {
		at = new(kind.Position)
	}
	if op.Tokens > 0 || op.ID != "" || p.Ends > 0 || head == kind.Reenter {
		tokens = strconv.Itoa(op.Tokens)
	}
	if p.Ends > 0 {
		ends = script.Millis(p.Ends)
	}
	args := []string{op.Owner, script.Millis(op.Lease), head, tokens, strconv.Itoa(op.Held), op.ID, ends,
		script.Flag(op.Position == nil || at.Again), "0", p.channel, p.names.Publish, p.names.Counts, inbox.Prefix}
	if op.Position != nil {
		waiting := at.Waiting
		if waiting == 1 && !at.Again {
			waiting = 0 // one is what Redis takes it to be
		}
		args = append(args, strconv.Itoa(waiting), at.Join, script.Itoa(at.Last), script.Itoa(at.Before), strconv.Itoa(at.Joined), script.Flag(op.Line.Tells))
	}
	return script.Command{Script: acquireScript, Keys: p.helpers(p.keys[:], op), Args: args}
}

// Look is look.lua.
func (p *Primitive) Look(entries []string) script.Command {
	keys := p.keys[:]
	if p.Fenced {
		keys = p.withToken(keys)
	}
	args := []string{p.channel, p.names.Publish, p.names.Counts, inbox.Prefix, script.Flag(p.Fenced)}
	return script.Command{Script: lookScript, Keys: keys, Args: append(args, entries...)}
}

// Entry is how an entry begins: where the fencing tokens have an end, another's release cannot see to that, and so
// the session is called, and asks.
func (p *Primitive) Entry(head string) string {
	switch {
	case p.Ends == 0 || head == "":
	case strings.Contains("gz", head[:1]):
		return "a" + head[1:]
	case strings.Contains("fhd", head[:1]):
		return "e" + head[1:]
	}
	return head
}

// acquireWithoutLine is an acquire script call that names no line.
func acquireWithoutLine(c script.Command) script.Command {
	c.Keys = append(c.Keys[:1:1], c.Keys[2:]...)
	c.Args = append([]string(nil), c.Args...)
	c.Args[2], c.Fewer = "", nil
	return c
}

// Release is release.lua.
func (p *Primitive) Release(op *kind.Op) script.Command {
	keys, counts, prefix := p.names.Keys[:], p.names.Counts, ""
	if op.Line.Named {
		keys, prefix = p.keys[:], inbox.Prefix
	}
	byIDs := op.ByIDs || !op.All
	if byIDs {
		keys = p.withIDs(keys)
	}
	tokens := p.Fenced && op.Line.Named
	if tokens {
		keys = p.withToken(keys)
	}
	args := []string{op.Owner, p.channel, p.names.Publish, counts, prefix}
	if l := &op.Line; byIDs || tokens || op.Position != nil || l.Head != "" || l.Enter != "" || l.Listens {
		args = append(args, script.Flag(byIDs), script.Flag(tokens), l.Head, l.Enter, script.Flag(l.Listens), strconv.Itoa(l.Waiting))
	}
	switch at := op.Position; {
	case at != nil:
		args = append(args, script.Itoa(at.Before), script.Itoa(at.Last))
	case !op.All:
		args = append(args, "", "")
	}
	if !op.All {
		args = append(args, script.Millis(op.Keep), script.Flag(op.Private), strconv.Itoa(len(op.Ends)))
		args = append(append(args, op.Ends...), op.IDs...)
	}
	cmd := script.Command{Script: releaseScript, Keys: keys, Args: args}
	if op.Line.Named {
		cmd.Fewer = releaseWithoutLine
	}
	return cmd
}

// releaseWithoutLine is a release script call that names neither line nor tokens.
func releaseWithoutLine(c script.Command) script.Command {
	c.Keys = append(c.Keys[:1:1], c.Keys[2:]...)
	c.Args = append([]string(nil), c.Args...)
	c.Args[4], c.Fewer = "", nil
	if c.Args[2] == "SPUBLISH" { // those who wait at the other node hear it too
		c.Args[3] = "b"
	}
	if len(c.Args) > 6 && c.Args[6] == "1" {
		c.Keys, c.Args[6] = c.Keys[:len(c.Keys)-1], "0"
	}
	return c
}

// Dismiss releases what an entry of this session was given, or takes it out of the line.
func (*Primitive) Dismiss(n keyname.Names, head, owner string, given bool) script.Command {
	// One that was not given the lock may have it by now: that is not touched.
	return New(n, Fencing{}).Release(&kind.Op{Owner: owner, All: given, Private: given, Line: kind.Line{Named: true, Head: head}})
}

// Extend is extend.lua.
func (p *Primitive) Extend(op *kind.Op) script.Command {
	keys, ends := p.names.Keys[:], time.Duration(0)
	if op.ByIDs || op.ID != "" {
		keys = p.withIDs(keys)
	}
	if p.Ends > 0 && !op.FewestKeys {
		keys, ends = p.withToken(keys), p.Ends
	}
	args := []string{op.Owner, script.Millis(op.Lease), script.Flag(op.Private), script.Flag(op.Away),
		op.ID, strconv.Itoa(len(op.Void)), script.Millis(ends)}
	return script.Command{
		Script: extendScript, Keys: keys, Args: append(append(args, op.Void...), op.IDs...),
	}
}

// Leave is leave.lua.
func (p *Primitive) Leave(op *kind.Op) script.Command {
	keys, ends, byIDs := p.keys[:], time.Duration(0), op.ByIDs || !op.Private
	if byIDs {
		keys = p.withIDs(keys)
	}
	if p.Ends > 0 {
		keys, ends = p.withToken(keys), p.Ends
	}
	args := []string{op.Owner, script.Millis(op.Lease), script.Flag(op.Private), script.Flag(byIDs), script.Millis(ends),
		p.channel, p.names.Publish, inbox.Prefix}
	if !op.Private {
		args = append(args, op.Ends...)
	}
	return script.Command{Script: leaveScript, Keys: keys, Args: args, Fewer: leaveWithoutLine}
}

// leaveWithoutLine is a leave script call that names neither line nor token.
func leaveWithoutLine(c script.Command) script.Command {
	c.Keys = append(c.Keys[:1:1], c.Keys[2:]...)
	c.Args = append([]string(nil), c.Args...)
	c.Args[7], c.Fewer = "", nil
	if c.Args[4] != "0" {
		c.Keys, c.Args[4] = c.Keys[:len(c.Keys)-1], "0"
	}
	return c
}

// RenewScript is renew.lua, or renew_fenced.lua.
func (p *Primitive) RenewScript() *script.Script {
	if p.Ends > 0 {
		return renewFencedScript
	}
	return renewScript
}

// RenewArgs are the lock and, if there are some, the ids that go along with it, and a fencing
// token that has an end.
func (p *Primitive) RenewArgs(op *kind.Op) (keys, args []string) {
	keys, args = p.names.Keys[:], []string{op.Owner}
	if p.Ends > 0 {
		args[0] = "=" + op.Owner
	}
	if op.ByIDs && !op.FewestKeys {
		keys, args = p.withIDs(keys), append(args, "")
	}
	if p.Ends > 0 && !op.FewestKeys {
		keys, args = p.withToken(keys), append(args, script.Millis(p.Ends))
	}
	return keys, args
}

// Blockers are the fields of the lock.
func (p *Primitive) Blockers(fields map[string]string) []string {
	return slices.Collect(maps.Keys(fields))
}

// State is state.lua.
func (p *Primitive) State() script.Command {
	return script.Command{Script: stateScript, Keys: p.names.Keys[:]}
}

// Waiters is waiters.lua.
func (p *Primitive) Waiters() script.Command {
	return script.Command{Script: waitersScript, Keys: p.keys[1:]}
}

// forceWithoutLine is a force_unlock script call that names neither mark nor line.
func forceWithoutLine(c script.Command) script.Command {
	c.Keys, c.Fewer = c.Keys[:1:1], nil
	return c
}

// ForceUnlock is force_unlock.lua.
func (p *Primitive) ForceUnlock(f *kind.Force) script.Command {
	return f.Command(script.Command{
		Script: forceUnlockScript, Keys: p.keys[:],
		Args:  []string{p.channel, p.names.Publish, inbox.Prefix, p.names.Counts, "0"},
		Fewer: forceWithoutLine,
	}, p.names.Prefixed("relock_forced"))
}
