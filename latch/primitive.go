package latch

import (
	"embed"
	"strings"
	"sync/atomic"

	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	awaitScript     = script.Load(luaFiles, "lua/await.lua")
	countScript     = script.Load(luaFiles, "lua/count.lua")
	countDownScript = script.Load(luaFiles, "lua/count_down.lua")
	trySetScript    = script.Load(luaFiles, "lua/try_set.lua")
)

// latchKind: to pass an open latch takes nothing, so nothing is leased or released.
var latchKind = kind.Kind{Family: "latch", Permits: true, Unleased: true, Opens: true}

// gate is the primitive of a latch.
type gate struct {
	names   keyname.Names
	channel atomic.Pointer[string]
	cluster bool
}

var _ kind.Primitive = (*gate)(nil)

// Kind is that of latches.
func (*gate) Kind() *kind.Kind { return &latchKind }

// Names are those of the latch.
func (g *gate) Names() *keyname.Names { return &g.names }

// channelPrefix is how Redisson's channel begins.
const channelPrefix = "redisson_countdownlatch__channel__"

// Channel is Redisson's, which has braces around every name. In a Cluster a channel must be in
// the slot of its key. For names with braces that one is not, and Redisson cannot use them
// there; their channel is named as those of other locks.
func (g *gate) Channel() string {
	if c := g.channel.Load(); c != nil {
		return *c
	}
	c := channelPrefix + "{" + g.names.Key() + "}"
	if g.cluster && keyname.Slot(c) != keyname.Slot(g.names.Key()) {
		c = g.names.Prefixed(strings.TrimRight(channelPrefix, "_"))
	}
	g.channel.Store(&c)
	return c
}

// Acquire is await.lua.
func (g *gate) Acquire(*kind.Op) script.Command {
	return script.Command{Script: awaitScript, Keys: g.names.Keys[:]}
}

// Release is not sent: there is nothing to give back, whatever became of an attempt. A question would do no harm.
func (g *gate) Release(*kind.Op) script.Command {
	return script.Command{Script: countScript, Keys: g.names.Keys[:]}
}
