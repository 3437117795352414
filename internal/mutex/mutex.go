// Package mutex is what tells the machine of Redisson's RLock and RFencedLock: a hash of
// owners and their holds, and the scripts of rlock/lua. The plain and the fair Mutex and quorum
// share it.
package mutex

import (
	"maps"
	"slices"
	"strconv"
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
	renewScript       = script.Load(lua.Files, "renew.lua")
	renewFencedScript = script.Load(lua.Files, "renew_fenced.lua")
	stateScript       = script.Load(lua.Files, "state.lua")
	forceUnlockScript = script.Load(lua.Files, "force_unlock.lua")
)

var (
	plainKind  = kind.Kind{Family: "mutex", Exclusive: true, HandsOver: true}
	fencedKind = kind.Kind{Family: "mutex", Exclusive: true, HandsOver: true, Fenced: true}
)

// Primitive is the lock of one name. It is small, since a session may hold a great many:
// but for the channel, which each release names, nothing derived from the name is kept.
type Primitive struct {
	names keyname.Names
	Fencing
	channel string
}

var _ interface {
	kind.Leased
	kind.Blocker
} = (*Primitive)(nil)

// Fencing says which fencing tokens a lock has.
type Fencing struct {
	Fenced bool          // a claim has some
	Ends   time.Duration // for how long their key outlives the lock; 0: it has no end
}

// New returns the primitive of that name.
func New(n keyname.Names, f Fencing) *Primitive {
	return &Primitive{names: n, Fencing: f, channel: n.Prefixed("redisson_lock__channel")}
}

// Kind: exclusive, and handed over in memory.
func (p *Primitive) Kind() *kind.Kind {
	if p.Fenced {
		return &fencedKind
	}
	return &plainKind
}

// Names are those of the lock.
func (p *Primitive) Names() *keyname.Names { return &p.names }

// Channel is Redisson's: "redisson_lock__channel:{name}".
func (p *Primitive) Channel() string { return p.channel }

// IDs is the key of the set of ids of holds.
func (p *Primitive) IDs() string { return p.names.Prefixed("relock_holds") }

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
	keys := p.names.Keys[:]
	if op.ID != "" {
		keys = p.withIDs(keys)
	}
	if op.Tokens > 0 || p.Ends > 0 {
		keys = p.withToken(keys)
	}
	args := append(make([]string, 0, 6), op.Owner, script.Millis(op.Lease))
	if len(keys) > 1 { // else the rest says nothing
		args = append(args, strconv.Itoa(op.Tokens), strconv.Itoa(op.Held), op.ID)
	}
	if p.Ends > 0 {
		args = append(args, script.Millis(p.Ends))
	}
	return script.Command{Script: acquireScript, Keys: keys, Args: args}
}

// Release is release.lua.
func (p *Primitive) Release(op *kind.Op) script.Command {
	keys, counts := p.names.Keys[:], p.names.Counts
	if op.ByIDs || !op.All {
		keys = p.withIDs(keys)
	}
	args := []string{op.Owner, p.channel, p.names.Publish, counts}
	if !op.All {
		args = append(args, script.Millis(op.Keep), script.Flag(op.Private), strconv.Itoa(len(op.Ends)))
		args = append(append(args, op.Ends...), op.IDs...)
	}
	return script.Command{Script: releaseScript, Keys: keys, Args: args}
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

// ForceUnlock is force_unlock.lua.
func (p *Primitive) ForceUnlock(owners []string) script.Command {
	return script.Command{
		Script: forceUnlockScript, Keys: p.names.Keys[:],
		Args: append([]string{p.channel, p.names.Publish, inbox.Prefix}, owners...),
	}
}
