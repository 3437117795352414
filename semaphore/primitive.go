package semaphore

import (
	"embed"
	"fmt"
	"sync/atomic"

	"relock/internal/engine"
	"relock/internal/script"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	acquireScript  = script.Load(luaFiles, "lua/acquire.lua")
	releaseScript  = script.Load(luaFiles, "lua/release.lua")
	renewScript    = script.Load(luaFiles, "lua/renew.lua")
	extendScript   = script.Load(luaFiles, "lua/extend.lua")
	stateScript    = script.Load(luaFiles, "lua/state.lua")
	setLimitScript = script.Load(luaFiles, "lua/set_limit.lua")
)

// permitsKind: many claims hold it together, each for itself.
var permitsKind = engine.Kind{Family: "semaphore", Permits: true, HandsOver: true}

// names are what both kinds of semaphore are called in Redis. The channel is kept once it
// is known; a session may hold a great many semaphores, so the rest is not.
type names struct {
	key     engine.Names
	channel atomic.Pointer[string]
}

// Names are those of the semaphore.
func (n *names) Names() *engine.Names { return &n.key }

// Channel is Redisson's: "redisson_sc:{name}".
func (n *names) Channel() string {
	if c := n.channel.Load(); c != nil {
		return *c
	}
	c := n.key.Prefixed("redisson_sc")
	n.channel.Store(&c)
	return c
}

// permits is the primitive of a semaphore. Each claim is an owner of its own, and the ids of
// its permits come from the owner: so nothing has to be remembered for a command to be
// safe to send twice.
type permits struct {
	names
	limit int

	// known is the limit in Redis by what this handle has heard.
	known atomic.Int64
}

var _ interface {
	engine.Leased
	engine.Refuser
} = (*permits)(nil)

// newPermits returns the primitive of that name. limit is for a semaphore that does not
// exist yet.
func newPermits(n engine.Names, limit int) *permits {
	p := &permits{names: names{key: n}, limit: limit}
	p.known.Store(int64(limit))
	return p
}

// Kind is that of permits.
func (*permits) Kind() *engine.Kind { return &permitsKind }

// Never tells of a limit below what was asked for.
func (p *permits) Never(limit int64) error {
	p.known.Store(limit)
	return fmt.Errorf("%w: the limit is %d", ErrLimit, limit)
}

// keys are the free permits and the taken ones.
func (p *permits) keys() []string { return []string{p.key.Key(), p.key.Suffixed("timeout")} }

// Acquire is acquire.lua.
func (p *permits) Acquire(op *engine.Op) script.Command {
	return script.Command{Script: acquireScript, Keys: p.keys(), Args: []string{
		op.Owner, script.Itoa(int64(op.N)), script.Millis(op.Lease), script.Itoa(int64(p.limit)), p.Channel(), p.key.Publish(),
	}}
}

// Release is release.lua. A claim ends whole.
func (p *permits) Release(op *engine.Op) script.Command {
	return script.Command{Script: releaseScript, Keys: p.keys(), Args: []string{
		op.Owner, script.Itoa(int64(op.N)), p.Channel(), p.key.Publish(), script.Flag(p.key.CountsReceivers()),
	}}
}

// Extend is extend.lua.
func (p *permits) Extend(op *engine.Op) script.Command {
	return script.Command{Script: extendScript, Keys: p.keys(), Args: []string{
		op.Owner, script.Itoa(int64(op.N)), script.Millis(op.Lease), script.Flag(op.All || op.Private),
	}}
}

// RenewScript is renew.lua.
func (*permits) RenewScript() *script.Script { return renewScript }

// RenewArgs are one arg that says it all, and a blank for each further permit: so the
// session, which bounds the args of a script, bounds the permits that one renews.
func (p *permits) RenewArgs(op *engine.Op) (keys, args []string) {
	args = make([]string, max(1, op.N))
	args[0] = script.Itoa(int64(op.N)) + ":" + op.Owner
	return p.keys(), args
}

// state is state.lua.
func (p *permits) state() script.Command {
	return script.Command{Script: stateScript, Keys: p.keys(), Args: []string{
		script.Itoa(int64(p.limit)), p.Channel(), p.key.Publish(),
	}}
}

// setLimit is set_limit.lua.
func (p *permits) setLimit(limit int) script.Command {
	return script.Command{Script: setLimitScript, Keys: p.keys(), Args: []string{
		script.Itoa(int64(limit)), p.Channel(), p.key.Publish(),
	}}
}
