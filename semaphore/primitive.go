package semaphore

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"relock/internal/api"
	"relock/internal/calls"
	"relock/internal/engine"
	"relock/internal/idgen"
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
	acquireScript  = script.Load(luaFiles, "lua/acquire.lua")
	releaseScript  = script.Load(luaFiles, "lua/release.lua")
	renewScript    = script.Load(luaFiles, "lua/renew.lua")
	renewByTaken   = script.Load(luaFiles, "lua/renew_taken.lua")
	extendScript   = script.Load(luaFiles, "lua/extend.lua")
	stateScript    = script.Load(luaFiles, "lua/state.lua")
	setLimitScript = script.Load(luaFiles, "lua/set_limit.lua")
	deleteScript   = script.Load(luaFiles, "lua/delete.lua")
	waitersScript  = script.Load(lua.Files, "waiters.lua")
)

// timeouts is the suffix of the key of the taken permits.
const timeouts = "timeout"

// permitsKind: many claims hold it together, each for itself.
var permitsKind = kind.Kind{Family: "semaphore", Permits: true, HandsOver: true, Lines: true, Sort: waiting.OfPermits}

// names are what both kinds of semaphore are called in Redis. What each command names is kept once it
// is known.
type names struct {
	key   keyname.Names
	texts atomic.Pointer[texts]
}

// texts are names that are built when a command first needs them.
type texts struct {
	channel string
	permits [3]string // the keys of the free permits, of the taken ones and of the line
}

func (n *names) built() *texts {
	t := n.texts.Load()
	if t == nil {
		t = &texts{channel: n.key.Prefixed("redisson_sc"),
			permits: [3]string{n.key.Key(), n.key.Suffixed(timeouts), n.key.Prefixed(keyname.Line)}}
		n.texts.Store(t)
	}
	return t
}

// Names are those of the semaphore.
func (n *names) Names() *keyname.Names { return &n.key }

// Channel is Redisson's: "redisson_sc:{name}".
func (n *names) Channel() string { return n.built().channel }

// permits is the primitive of a semaphore. Each claim is an owner of its own, and the ids of
// its permits come from the owner: so nothing has to be remembered for a command to be
// safe to send twice.
type permits struct {
	names
	s     *engine.Session
	limit int
	end   time.Duration // see Expire; 0: none

	// known is the limit in Redis by what this handle has heard.
	known atomic.Int64
	told  kind.Limit
	mine  atomic.Bool // SetLimit was called on this handle: another limit than New's is no surprise
}

var _ interface {
	kind.Leased
	kind.Liner
	kind.Refuser
} = (*permits)(nil)

// newPermits returns the primitive of that name. limit is for a semaphore that does not
// exist yet.
func newPermits(s *engine.Session, n keyname.Names, limit int, end time.Duration) *permits {
	p := &permits{names: names{key: n}, s: s, limit: limit, end: end}
	p.known.Store(int64(limit))
	return p
}

// otherLimit warns, through a handle, of a limit in Redis that is not the one that New was given: one that was
// changed in the code alone has no effect.
func (p *permits) otherLimit(h *calls.Handle) func(limit int64, exact bool) {
	return func(limit int64, exact bool) {
		if p.mine.Load() {
			return
		}
		key := "limit"
		if !exact {
			key = "least limit"
		}
		h.Once(func(log *slog.Logger) {
			log.Warn("relock: the semaphore has another limit in Redis than New was given, and that in Redis holds",
				"name", api.Shown(p.key.Name()), key, limit, "given", p.limit)
		})
	}
}

// Kind is that of permits.
func (*permits) Kind() *kind.Kind { return &permitsKind }

// Never tells of a limit below what was asked for.
func (p *permits) Never(limit int64) error {
	p.known.Store(limit)
	return fmt.Errorf("%w: the limit is %d", ErrLimit, limit)
}

// keys are the free permits and the taken ones.
func (p *permits) keys() []string { return p.built().permits[:2:2] }

// keysAndLine are those and the line.
func (p *permits) keysAndLine() []string { return p.built().permits[:] }

// line is the key of the line of sessions that wait.
func (n *names) line() string { return n.built().permits[2] }

// waiters asks through a handle how many callers wait.
func (n *names) waiters(ctx context.Context, h *calls.Handle) (int, error) {
	return h.Waiters(ctx, func(from int64) script.Command {
		return script.Command{Script: waitersScript, Keys: []string{n.line()}, Args: []string{script.Itoa(from)}}
	})
}

// Entry is how an entry begins.
func (*names) Entry(head string) string { return head }

// Dismiss gives back the permits that an entry of this session was given, or takes it out of the line.
func (*names) Dismiss(n keyname.Names, head, owner string, given bool) script.Command {
	op := kind.Op{Owner: owner, Line: kind.Line{Named: true, Head: head}}
	if given {
		op.N, _ = strconv.Atoi(head[1:4])
	}
	return (&permits{names: names{key: n}}).Release(&op)
}

// waitArgs appends what an attempt says of the line, if it waits there or polls.
func (n *names) waitArgs(args []string, op *kind.Op) []string {
	l := &op.Line
	switch {
	case l.Session != "":
		return append(args, "b", "0", "0", n.key.Counts, inbox.Prefix, "0", l.Session, script.Millis(l.ComesIn), script.Millis(l.Window))
	case l.Head != "":
		return append(args, l.Head, script.Flag(l.Again), script.Flag(l.Listens), n.key.Counts, inbox.Prefix,
			strconv.Itoa(l.Waiting), op.Owner, "", "")
	}
	return append(args, "")
}

// acquireWithoutLine is an acquire script call that does not name the line.
func acquireWithoutLine(c script.Command) script.Command {
	c.Keys, c.Args, c.Fewer = c.Keys[:2:2], slices.Concat(c.Args[:6], []string{""}, c.Args[15:]), nil
	return c
}

// kept is for how many ms from now the scripts keep the semaphore at least: for its end, and for
// a lease that is given now. It is 0 if the semaphore has no end.
func (p *permits) kept(lease time.Duration) string {
	if p.end == 0 {
		return "0"
	}
	return script.Millis(max(p.end, lease+time.Second))
}

// Acquire is acquire.lua. When the next permit expires matters only to a caller behind this one.
func (p *permits) Acquire(op *kind.Op) script.Command {
	args := make([]string, 0, 15+op.N)
	args = p.waitArgs(append(args, script.Millis(op.Lease), script.Itoa(int64(p.limit)), p.Channel(), p.key.Publish, p.kept(op.Lease),
		script.Flag(op.Next)), op)
	op.Limit = &p.told
	cmd := script.Command{Script: acquireScript, Keys: p.keys(), Args: idgen.AppendPermits(args, op.Owner, op.N)}
	if args[6] != "" {
		cmd.Keys, cmd.Fewer = p.keysAndLine(), acquireWithoutLine
	}
	return cmd
}

// Release is release.lua. A claim ends whole.
func (p *permits) Release(op *kind.Op) script.Command {
	args, listens := make([]string, 0, 9+op.N), ""
	if l := &op.Line; l.Others || l.Listens {
		listens = script.Flag(l.Listens)
	}
	args = append(args, p.Channel(), p.key.Publish, p.key.Counts, p.kept(0), inbox.Prefix, op.Line.Head, op.Owner, listens, script.Flag(op.Line.Yields))
	return script.Command{Script: releaseScript, Keys: p.keysAndLine(), Args: idgen.AppendPermits(args, op.Owner, op.N), Fewer: releaseWithoutLine}
}

// releaseWithoutLine is a release script call that does not name the line.
func releaseWithoutLine(c script.Command) script.Command {
	c.Keys, c.Args, c.Fewer = c.Keys[:2:2], slices.Clone(c.Args), nil
	c.Args[4], c.Args[5] = "", ""
	if c.Args[1] == "SPUBLISH" { // those who wait at the other node hear it too
		c.Args[2] = "b"
	}
	return c
}

// lined names the line besides in a call whose last argument before the line's is counts.
func (n *names) lined(c script.Command) script.Command {
	fewer := c
	fewer.Args = slices.Concat(c.Args, []string{""})
	c.Keys, c.Args = slices.Concat(c.Keys, []string{n.line()}), slices.Concat(c.Args, []string{inbox.Prefix})
	c.Fewer = func(script.Command) script.Command { return fewer }
	return c
}

// Extend is extend.lua.
func (p *permits) Extend(op *kind.Op) script.Command {
	keys := p.keys()
	if op.ID != "" {
		keys = append(keys, p.key.Prefixed("relock_extended")+":"+op.Owner)
	}
	args := make([]string, 0, 5+op.N)
	args = append(args, script.Millis(op.Lease), script.Flag(!op.Away && op.Private), p.kept(op.Lease),
		op.ID, script.Itoa(int64(op.N)))
	return script.Command{Script: extendScript, Keys: keys, Args: append(idgen.AppendPermits(args, op.Owner, op.N), op.Void...)}
}

// Renew is renew.lua, or renew_taken.lua. It has an arg for each permit, so that the session, which bounds the args of a script,
// bounds the permits that one renews.
func (p *permits) Renew(op *kind.Op) script.Command {
	args := append(make([]string, 0, 2+op.N), script.Itoa(int64(op.N)), p.kept(p.s.Config().Lease))
	cmd := script.Command{Script: renewScript, Keys: p.keys(), Args: idgen.AppendPermits(args, op.Owner, op.N)}
	if op.FewestKeys {
		cmd.Script, cmd.Keys = renewByTaken, cmd.Keys[1:]
	}
	return cmd
}

// state is state.lua.
func (p *permits) state() script.Command {
	return p.lined(script.Command{Script: stateScript, Keys: append(p.keys(), p.counter()), Args: []string{
		script.Itoa(int64(p.limit)), p.Channel(), p.key.Publish, p.key.Counts,
	}})
}

// setLimit is set_limit.lua.
func (p *permits) setLimit(limit int, id string) script.Command {
	_, number := idgen.SplitRequest(id)
	return p.lined(script.Command{Script: setLimitScript, Keys: p.changeKeys(), Args: []string{
		script.Itoa(int64(limit)), p.Channel(), p.key.Publish, number, script.Millis(p.s.Config().RequestMemory()),
		p.kept(p.s.Config().Lease), p.key.Counts,
	}})
}

// deletion is delete.lua.
func (p *permits) deletion(id string) script.Command {
	_, number := idgen.SplitRequest(id)
	return p.lined(script.Command{Script: deleteScript, Keys: p.changeKeys(), Args: []string{
		number, script.Millis(p.s.Config().RequestMemory()), p.Channel(), p.key.Publish,
	}})
}

// changeKeys are the keys of the scripts that change the semaphore as a whole.
func (p *permits) changeKeys() []string {
	return append(p.keys(), p.counter(), p.key.Prefixed("relock_limit")+":"+p.s.Requests().Client)
}

// counter is the key that shows that a Counter of the same name is in use.
func (p *permits) counter() string { return requestsKey(p.s, &p.key) }
