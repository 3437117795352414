package semaphore

import (
	"slices"
	"sync/atomic"
	"time"

	"relock/internal/engine"
	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
)

var (
	takeScript          = script.Load(luaFiles, "lua/take.lua")
	untakeScript        = script.Load(luaFiles, "lua/untake.lua")
	addScript           = script.Load(luaFiles, "lua/add.lua")
	drainScript         = script.Load(luaFiles, "lua/drain.lua")
	trySetScript        = script.Load(luaFiles, "lua/try_set.lua")
	deleteCounterScript = script.Load(luaFiles, "lua/delete_counter.lua")
	countScript         = script.Load(luaFiles, "lua/count.lua")
)

// countKind: what is taken belongs to no owner.
var countKind = kind.Kind{Family: "counter", Permits: true, Unleased: true, Lines: true, Sort: waiting.OfPermits}

// count is the primitive of a counter.
type count struct {
	names
	s    *engine.Session
	end  time.Duration // see Expire; 0: none
	made atomic.Pointer[[]string]
}

var _ kind.Liner = (*count)(nil)

// newCount returns the primitive of that name.
func newCount(s *engine.Session, n keyname.Names, end time.Duration) *count {
	return &count{names: names{key: n}, s: s, end: end}
}

// Kind is that of counters.
func (*count) Kind() *kind.Kind { return &countKind }

// keys are the counter's, that of a Semaphore of the same name, which must not be there, and that
// of what Redis remembers of this session's requests.
func (p *count) keys() []string {
	if k := p.made.Load(); k != nil {
		return *k
	}
	k := []string{p.key.Key(), p.key.Suffixed(timeouts), requestsKey(p.s, &p.key)}
	p.made.Store(&k)
	return k
}

// requestsKey is the key of what Redis remembers of this session's requests to a counter.
func requestsKey(s *engine.Session, n *keyname.Names) string {
	return n.Prefixed("relock_requests") + ":" + s.Requests().Client
}

// once returns a command that counts once for each request.
func (p *count) once(sc *script.Script, keys []string, id string, args ...string) script.Command {
	slot, number := idgen.SplitRequest(id)
	return script.Command{
		Script: sc, Keys: keys,
		Args: append([]string{slot, number, script.Millis(p.s.Config().RequestMemory()), script.Millis(p.end)}, args...),
	}
}

// Acquire is take.lua.
func (p *count) Acquire(op *kind.Op) script.Command {
	args := p.waitArgs([]string{script.Itoa(int64(op.N))}, op)
	if args[1] == "" {
		return p.once(takeScript, p.keys(), op.ID, args...)
	}
	args = append(args, p.Channel(), p.key.Publish)
	cmd := p.once(takeScript, slices.Concat(p.keys(), []string{p.line()}), op.ID, args...)
	cmd.Fewer = func(c script.Command) script.Command {
		c.Keys, c.Args, c.Fewer = c.Keys[:3:3], append(c.Args[:5:5], ""), nil
		return c
	}
	return cmd
}

// Release is untake.lua: it takes back a request whose outcome is unknown.
func (p *count) Release(op *kind.Op) script.Command {
	k := p.keys()
	cmd := p.once(untakeScript, []string{k[0], k[2], p.line()}, op.Ends[0],
		p.Channel(), p.key.Publish, p.key.Counts, inbox.Prefix, op.Line.Head, op.Owner)
	cmd.Fewer = func(c script.Command) script.Command {
		c.Keys, c.Args, c.Fewer = c.Keys[:2:2], slices.Clone(c.Args), nil
		c.Args[7] = ""
		return c
	}
	return cmd
}
