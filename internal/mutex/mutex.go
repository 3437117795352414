// Package mutex is what tells the machine of Redisson's RLock and RFencedLock: a hash of
// owners and their holds, and the scripts of rlock/lua. The plain and the fair Mutex and quorum
// share it.
package mutex

import (
	"maps"
	"slices"
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
		keys: [2]string{n.Key(), n.Prefixed(keyname.Line)}}
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
func (p *Primitive) IDs() string { return p.names.Prefixed(keyname.Holds) }

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

// Blockers are the fields of the lock.
func (p *Primitive) Blockers(fields map[string]string) []string {
	return slices.Collect(maps.Keys(fields))
}

// State is state.lua: it replies with the TTL in ms, followed by each owner and its count.
func (p *Primitive) State() script.Command {
	return script.Command{Script: stateScript, Keys: p.names.Keys[:]}
}

// Waiters is waiters.lua, for [calls.Handle.Waiters].
func (p *Primitive) Waiters(from int64) script.Command {
	return script.Command{Script: waitersScript, Keys: p.keys[1:], Args: []string{script.Itoa(from)}}
}

// forceWithoutLine is a force_unlock script call that names neither mark nor line.
func forceWithoutLine(c script.Command) script.Command {
	c.Keys, c.Fewer = c.Keys[:1:1], nil
	return c
}

// ForceUnlock is force_unlock.lua, for engine.Handle.ForceUnlock.
func (p *Primitive) ForceUnlock(f *kind.Force) script.Command {
	return f.Command(script.Command{
		Script: forceUnlockScript, Keys: p.keys[:],
		Args:  []string{p.channel, p.names.Publish, inbox.Prefix, p.names.Counts, "0"},
		Fewer: forceWithoutLine,
	}, p.names.Prefixed("relock_forced"))
}
