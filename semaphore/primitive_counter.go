package semaphore

import (
	"relock/internal/engine"
	"relock/internal/script"
)

var (
	takeScript   = script.Load(luaFiles, "lua/take.lua")
	untakeScript = script.Load(luaFiles, "lua/untake.lua")
	addScript    = script.Load(luaFiles, "lua/add.lua")
	drainScript  = script.Load(luaFiles, "lua/drain.lua")
	trySetScript = script.Load(luaFiles, "lua/try_set.lua")
	countScript  = script.Load(luaFiles, "lua/count.lua")
)

// countKind: what is taken belongs to no owner.
var countKind = engine.Kind{Family: "counter", Permits: true, Unleased: true}

// count is the primitive of a counter.
type count struct{ names }

var _ engine.Primitive = (*count)(nil)

// newCount returns the primitive of that name.
func newCount(n engine.Names) *count { return &count{names{key: n}} }

// Kind is that of counters.
func (*count) Kind() *engine.Kind { return &countKind }

// remembered is for how long Redis knows that a request was made, or given up: while it is
// sent again, while it is taken back, which is tried for as long, and as long for what comes
// late.
const remembered = 3 * engine.Memory

// request returns the keys of a request: the counter's, and one that remembers it.
func (p *count) request(id string) []string {
	return []string{p.key.Key(), p.key.Prefixed("relock_request") + ":" + id}
}

// Acquire is take.lua.
func (p *count) Acquire(op *engine.Op) script.Command {
	return script.Command{
		Script: takeScript, Keys: p.request(op.ID), Args: []string{script.Itoa(int64(op.N)), script.Millis(remembered)},
	}
}

// Release is untake.lua: it takes back a request whose outcome is unknown.
func (p *count) Release(op *engine.Op) script.Command {
	return script.Command{Script: untakeScript, Keys: p.request(op.Ends[0]), Args: []string{
		p.Channel(), p.key.Publish(), script.Flag(p.key.CountsReceivers()), script.Millis(remembered),
	}}
}
