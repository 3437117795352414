package fairlock

import (
	"embed"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"relock/internal/engine"
	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
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
	plainKind  = kind.Kind{Family: "fair", Exclusive: true, Queues: true}
	fencedKind = kind.Kind{Family: "fair", Exclusive: true, Queues: true, Fenced: true}
)

// primitive is what makes the fair lock fair: the hash, its renewal, its extension, its state
// and its nested holds are those of the plain mutex, but waiters stand in a queue in Redis.
type primitive struct {
	*mutex.Primitive
	s      *engine.Session
	shared atomic.Pointer[shared]
}

// shared is what all calls of scripts have in front, and what is said of the session in many of
// them. It is built when a command first needs it.
type shared struct {
	keys, args []string
	ahead      string // what every entry of the session begins with
	life, deaf string // what the queue knows of the session, but for the time; deaf: it cannot listen
}

var _ interface {
	kind.Leased
	kind.Queuer
} = (*primitive)(nil)

func newPrimitive(s *engine.Session, n keyname.Names, f mutex.Fencing) *primitive {
	return &primitive{Primitive: mutex.New(n, f), s: s}
}

// Kind: exclusive, and its waiters queue in Redis.
func (p *primitive) Kind() *kind.Kind {
	if p.Fenced {
		return &fencedKind
	}
	return &plainKind
}

// Unconfirmed is a quarter of the session's QueueLease, as in grant.lua.
func (p *primitive) Unconfirmed() time.Duration { return p.s.Config().QueueLease / 4 }

// ahead is what every entry of the session begins with.
func (p *primitive) ahead() string { return p.front().ahead }

// Entry is the name of an entry, which the scripts take apart; see grant.lua. A private owner is
// the session's id and something behind it, which is not repeated.
func (p *primitive) Entry(owner, id string) string {
	if id == "" {
		return p.ahead() + strings.TrimPrefix(owner, p.s.ID())
	}
	return p.ahead() + "#" + id + owner
}

// Dismiss releases what an entry of this session was granted under a key.
func (p *primitive) Dismiss(key, entry string) script.Command {
	op := kind.Op{All: true, Private: true}
	rest, _ := strings.CutPrefix(entry, p.ahead())
	if named, ok := strings.CutPrefix(rest, "#"); ok && len(named) > idLength {
		op = kind.Op{Owner: named[idLength:], Ends: []string{named[:idLength]}}
	} else {
		op.Owner = p.s.ID() + rest
	}
	return newPrimitive(p.s, p.s.NamesOf(key), mutex.Fencing{}).Release(&op)
}

// idLength is that of the ids of holds, see idgen.Request.
const idLength = 32

// digits writes n with at least that many digits.
func digits(n int64, width int) string {
	s := strconv.FormatInt(n, 10)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// command returns a script call with the keys and arguments that all scripts share in front.
func (p *primitive) command(sc *script.Script, args ...string) script.Command {
	front := p.front()
	all := make([]string, 0, len(front.args)+len(args))
	return script.Command{Script: sc, Keys: front.keys, Args: append(append(all, front.args...), args...)}
}

func (p *primitive) front() *shared {
	if front := p.shared.Load(); front != nil {
		return front
	}
	n, id, lease := p.Names(), p.s.ID(), script.Millis(p.s.Config().QueueLease)
	ms, _ := strconv.ParseInt(lease, 10, 64)
	front := &shared{
		keys: []string{n.Key(), n.Prefixed("relock_queue"), p.waiting(), p.IDs(), p.Token()},
		// PUBLISH to a session's channel is heard in the whole Cluster, but counts one node.
		args:  []string{p.Channel(), n.Publish, inbox.Prefix, script.Flag(!p.s.Cluster()), lease},
		ahead: digits(int64(len(id)), 5) + id,
		life:  flag(false, "d") + digits(ms, 13),
		deaf:  flag(true, "d") + digits(ms, 13),
	}
	p.shared.Store(front)
	return front
}

// waiting is the key of what is known of the queue.
func (p *primitive) waiting() string { return p.Names().Prefixed("relock_waiters") }

// life is what the queue knows of the session, but for the time.
func (p *primitive) life() string {
	if p.s.CannotListen() {
		return p.front().deaf
	}
	return p.front().life
}

func flag(set bool, letter string) string {
	if set {
		return letter
	}
	return "-"
}

// Acquire is acquire.lua. A nested hold is that of a plain mutex: no caller queues for it.
func (p *primitive) Acquire(op *kind.Op) script.Command {
	if op.Held > 0 {
		return p.Primitive.Acquire(op)
	}
	args := append(make([]string, 0, 13), op.Owner, script.Millis(op.Lease))
	at := op.Position
	if at == nil && op.Tokens == 0 && op.ID == "" && p.Ends == 0 {
		return p.command(acquireScript, args...) // the rest would say nothing
	}
	args = append(args, script.Itoa(int64(op.Tokens)), op.ID)
	switch {
	case at == nil:
		args = append(args, "", "", "0", "", "", "", "", "0")
	case at.Entry == "":
		args = append(args, "", "", "0", "", "", "", "", "-1")
	default:
		args = append(args, p.place(at, op.ID != "")...)
	}
	if p.Ends > 0 {
		args = append(args, script.Millis(p.Ends))
	}
	return p.command(acquireScript, args...)
}

// place is what acquire.lua is told of a run that queues.
func (p *primitive) place(at *kind.Position, named bool) []string {
	flags := flag(at.Open, "o") + flag(p.Fenced, "f") + flag(named, "n")
	joined := ""
	if at.Join != "" {
		joined = flags + digits(int64(at.Joined), 10)
	}
	return []string{at.Entry, at.Join, script.Itoa(at.Last),
		flags + digits(int64(at.Waiting), 10), joined, p.s.ID(), p.life(), script.Itoa(at.Before)}
}

// Release is release.lua.
func (p *primitive) Release(op *kind.Op) script.Command {
	if op.All {
		return p.command(releaseScript, op.Owner, p.Entry(op.Owner, ""))
	}
	args := make([]string, 0, 5+len(op.Ends)+len(op.IDs))
	args = append(args, op.Owner, p.ahead()+"#", script.Flag(op.Private), script.Millis(op.Keep), strconv.Itoa(len(op.Ends)))
	return p.command(releaseScript, append(append(args, op.Ends...), op.IDs...)...)
}

// Heartbeat is heartbeat.lua.
func (p *primitive) Heartbeat(entries []string) script.Command {
	return p.command(heartbeatScript, append([]string{p.s.ID(), p.life()}, entries...)...)
}

// ForceUnlock is force_unlock.lua.
func (p *primitive) ForceUnlock(owners []string) script.Command {
	return p.command(forceUnlockScript, append([]string{idgen.Request()}, owners...)...)
}

// Waiters is waiters.lua.
func (p *primitive) Waiters() script.Command {
	return script.Command{Script: waitersScript, Keys: []string{p.waiting()}}
}
