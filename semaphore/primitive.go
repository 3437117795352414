package semaphore

import (
	_ "embed"
	"strconv"
	"time"

	"relock/rlock"
)

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/extend.lua
var extendLua string

//go:embed lua/state.lua
var stateLua string

//go:embed lua/set_limit.lua
var setLimitLua string

var (
	acquireScript  = rlock.NewScript(acquireLua)
	releaseScript  = rlock.NewScript(releaseLua)
	renewScript    = rlock.NewScript(renewLua)
	extendScript   = rlock.NewScript(extendLua)
	stateScript    = rlock.NewScript(stateLua)
	setLimitScript = rlock.NewScript(setLimitLua)
)

// names are what both kinds of semaphore are called in Redis.
type names struct {
	rlock.Names
	channel string
	both    []string // the free permits and the taken ones; a Counter has only the first
}

func newNames(n rlock.Names) names {
	return names{Names: n, channel: n.Prefixed("redisson_sc"), both: []string{n.Key(), n.Suffixed("timeout")}}
}

// permits is the rlock.Primitive for n permits of a semaphore at once. Each acquisition is
// an owner of its own, and the ids of its permits come from the owner: so nothing has to be
// remembered for a command to be safe to send twice.
type permits struct {
	m *Semaphore
	n int
}

var _ interface {
	rlock.Sized
	rlock.Refuser
} = (*permits)(nil)

func (p *permits) Name() string    { return p.m.names.Name() }
func (p *permits) Key() string     { return p.m.names.Key() }
func (p *permits) Channel() string { return p.m.names.channel }
func (p *permits) Part() int       { return 0 }
func (p *permits) Size() int64     { return int64(p.n) }

// Traits: many hold it together, each for itself.
func (p *permits) Traits() rlock.Traits { return rlock.Traits{Anonymous: true, Orderly: true} }

// Never tells of a limit below n.
func (p *permits) Never(limit int64) error {
	p.m.known.Store(limit)
	return beyond(p.n, limit)
}

// Acquire is acquire.lua.
func (p *permits) Acquire(op *rlock.Op) rlock.Command {
	names := &p.m.names
	return rlock.Command{Script: acquireScript, Keys: names.both, Args: []string{
		op.Owner, itoa(p.n), millis(op.Lease), itoa(p.m.limit), names.channel, names.Publish(),
	}}
}

// Release is release.lua. An owner has one hold, without an id.
func (p *permits) Release(op *rlock.Op) rlock.Command {
	names := &p.m.names
	return rlock.Command{Script: releaseScript, Keys: names.both, Args: []string{
		op.Owner, itoa(p.n), names.channel, names.Publish(),
	}}
}

// Extend is extend.lua.
func (p *permits) Extend(op *rlock.Op) rlock.Command {
	closer := "0"
	if op.Holds > 0 {
		closer = "1"
	}
	return rlock.Command{Script: extendScript, Keys: p.m.names.both, Args: []string{
		op.Owner, itoa(p.n), millis(op.Lease), closer,
	}}
}

// Renew is renew.lua.
func (p *permits) Renew() *rlock.Script { return renewScript }

// RenewArgs are one arg that says it all, and a blank for each further permit: so the
// session, which bounds the args of a script, bounds the permits that one renews.
func (p *permits) RenewArgs(owner string, _ int, _ bool) (keys, args []string) {
	args = make([]string, p.n)
	args[0] = itoa(p.n) + ":" + owner
	return p.m.names.both, args
}

// itoa is for script arguments.
func itoa(n int) string { return strconv.Itoa(n) }

// millis rounds d up to whole milliseconds, the unit of Redis.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
