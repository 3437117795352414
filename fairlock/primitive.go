package fairlock

import (
	"embed"
	"strconv"
	"sync/atomic"
	"time"

	"relock/internal/engine"
	"relock/internal/idgen"
	"relock/internal/mutex"
	"relock/internal/script"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	acquireScript     = script.Load(luaFiles, "lua/acquire.lua")
	releaseScript     = script.Load(luaFiles, "lua/release.lua")
	heartbeatScript   = script.Load(luaFiles, "lua/heartbeat.lua")
	forceUnlockScript = script.Load(luaFiles, "lua/force_unlock.lua")
	waitersScript     = script.Load(luaFiles, "lua/waiters.lua")
)

var (
	plainKind  = engine.Kind{Family: "fair", Exclusive: true, ByID: true, Registers: true}
	fencedKind = engine.Kind{Family: "fair", Exclusive: true, ByID: true, Registers: true, Fenced: true}
)

// primitive is what makes the fair lock fair: the hash, its renewal, its extension and its
// state are those of the plain mutex, but waiters stand in a queue in Redis.
type primitive struct {
	*mutex.Primitive
	s      *engine.Session
	shared atomic.Pointer[shared]
}

// shared is what all calls of scripts have in front. It is built when a command first needs it.
type shared struct{ keys, args []string }

var _ interface {
	engine.Leased
	engine.Queuer
} = (*primitive)(nil)

func newPrimitive(s *engine.Session, n engine.Names, fenced bool) *primitive {
	return &primitive{Primitive: mutex.New(n, fenced), s: s}
}

// Kind: exclusive, and each waiter has a place in the queue.
func (p *primitive) Kind() *engine.Kind {
	if p.Fenced() {
		return &fencedKind
	}
	return &plainKind
}

// Unconfirmed is a quarter of the waiters' QueueLease, as in grant.lua.
func (p *primitive) Unconfirmed() time.Duration { return p.s.Config().QueueLease / 4 }

// Waiter is a place in the queue: a flag, a time, two texts with their lengths in front, and
// an id. The scripts take it apart, see grant.lua.
func (p *primitive) Waiter(owner, id string) string { return p.ahead(owner) + id }

func (p *primitive) ahead(owner string) string {
	return script.Flag(p.Fenced()) + script.Millis(p.s.Config().QueueLease) + ";" + counted(p.s.ID()) + counted(owner)
}

func counted(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// command returns a script call with the keys and arguments that all scripts share in front.
func (p *primitive) command(sc *script.Script, args ...string) script.Command {
	front := p.shared.Load()
	if front == nil {
		n := p.Names()
		front = &shared{
			keys: []string{n.Key(), n.Prefixed("relock_queue"), p.heartbeats(), p.IDs(), p.Token()},
			// PUBLISH to a session's channel is heard in the whole Cluster, but counts one node.
			args: []string{p.Channel(), n.Publish(), engine.SessionChannel, script.Flag(!p.s.Cluster()), script.Millis(p.s.Config().QueueLease)},
		}
		p.shared.Store(front)
	}
	all := make([]string, 0, len(front.args)+len(args))
	return script.Command{Script: sc, Keys: front.keys, Args: append(append(all, front.args...), args...)}
}

func (p *primitive) heartbeats() string { return p.Names().Prefixed("relock_heartbeats") }

// Acquire is acquire.lua. A fair lock is not handed over, so one token is enough.
func (p *primitive) Acquire(op *engine.Op) script.Command {
	place := ""
	if op.Wait {
		place = p.Waiter(op.Owner, op.ID)
	}
	return p.command(acquireScript,
		op.Owner, script.Millis(op.Lease), strconv.Itoa(op.Held), op.ID, script.Flag(op.Tokens > 0), place,
		script.Flag(p.s.CannotListen()))
}

// Release is release.lua.
func (p *primitive) Release(op *engine.Op) script.Command {
	owner := "0"
	switch {
	case op.All:
		owner = "2"
	case op.Private:
		owner = "1"
	}
	args := make([]string, 0, 5+len(op.Ends)+len(op.IDs))
	args = append(args, op.Owner, owner, script.Millis(op.Keep), p.ahead(op.Owner), strconv.Itoa(len(op.Ends)))
	return p.command(releaseScript, append(append(args, op.Ends...), op.IDs...)...)
}

// Heartbeat is heartbeat.lua.
func (p *primitive) Heartbeat(waiters []string) script.Command {
	return p.command(heartbeatScript, append([]string{script.Flag(p.s.CannotListen())}, waiters...)...)
}

// ForceUnlock is force_unlock.lua.
func (p *primitive) ForceUnlock() script.Command {
	return p.command(forceUnlockScript, idgen.Request())
}

// waiters is waiters.lua.
func (p *primitive) waiters() script.Command {
	return script.Command{Script: waitersScript, Keys: []string{p.heartbeats()}}
}
