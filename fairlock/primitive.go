package fairlock

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"relock/internal/idgen"
	"relock/rlock"
)

//go:embed lua/grant.lua
var grantLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/beat.lua
var beatLua string

//go:embed lua/force_unlock.lua
var forceUnlockLua string

//go:embed lua/waiters.lua
var waitersLua string

var (
	acquireScript     = rlock.NewScript(withGrant(acquireLua))
	releaseScript     = rlock.NewScript(withGrant(releaseLua))
	beatScript        = rlock.NewScript(withGrant(beatLua))
	forceUnlockScript = rlock.NewScript(withGrant(forceUnlockLua))
	waitersScript     = rlock.NewScript(waitersLua)
)

// withGrant puts grant.lua where a script includes it.
func withGrant(src string) string {
	return strings.Replace(src, "-- include grant.lua\n", grantLua, 1)
}

// primitive is what makes the fair lock fair: the hash, its renewal and its state are
// those of the plain mutex, but whoever waits does so in a queue in Redis.
type primitive struct {
	*rlock.MutexPrimitive
	s       *rlock.Session
	channel string // what it is known by in the session
	fenced  string // "1", or "0"
	claim   time.Duration
	keys    []string // of grant.lua
	args    []string // of grant.lua
}

var _ rlock.Queuer = (*primitive)(nil)

func newPrimitive(s *rlock.Session, name string, opts []rlock.MutexOption) (*primitive, error) {
	base, err := rlock.NewMutexPrimitive(s, name, opts...)
	p := &primitive{MutexPrimitive: base}
	if err != nil {
		return p, err
	}
	lock, ids, token := base.LockKeys()
	p.s, p.claim, p.channel, p.fenced = s, s.QueueClaim(), base.Prefixed("relock_queue"), flag(base.Fenced())
	p.keys = []string{lock, p.channel, base.Prefixed("relock_heartbeats"), ids, token}
	p.args = []string{
		base.Channel(), base.Publish(), rlock.SessionChannel(""), flag(!s.Cluster()), ms(s.Config().QueueLease),
	}
	return p, nil
}

func (p *primitive) Traits() rlock.Traits {
	return rlock.Traits{Exclusive: true, ByID: true, Marks: true}
}

// Channel is the queue: each waiter is told on its session's own channel. (It also keeps
// this kind of lock apart from others on the same name.)
func (p *primitive) Channel() string { return p.channel }

func (p *primitive) Claim() time.Duration { return p.claim }

// Place is a flag, a time, two texts with their lengths in front, and an id: grant.lua
// takes it apart.
func (p *primitive) Place(owner, id string) string { return p.ahead(owner) + id }

func (p *primitive) ahead(owner string) string {
	return p.fenced + p.args[4] + ";" + counted(p.s.ID()) + counted(owner)
}

func counted(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// command returns a script call with the arguments that all scripts share in front.
func (p *primitive) command(script *rlock.Script, args ...string) rlock.Command {
	all := make([]string, 0, len(p.args)+len(args))
	return rlock.Command{Script: script, Keys: p.keys, Args: append(append(all, p.args...), args...)}
}

func (p *primitive) Acquire(op *rlock.Op) rlock.Command {
	draw, place := "0", ""
	if op.Draw && op.Holds > 0 {
		draw = "1"
	}
	if op.Wait {
		place = p.Place(op.Owner, op.ID)
	}
	return p.command(acquireScript, op.Owner, ms(op.Lease), strconv.Itoa(op.Holds), op.ID, draw, place, p.fenced, flag(p.s.Deaf()))
}

func (p *primitive) Release(op *rlock.Op) rlock.Command {
	args := []string{op.Owner, strconv.Itoa(op.Holds), ms(op.Keep), p.ahead(op.Owner), strconv.Itoa(len(op.Ends))}
	return p.command(releaseScript, append(append(args, op.Ends...), op.IDs...)...)
}

func (p *primitive) Beat(places []string) rlock.Command {
	return p.command(beatScript, append([]string{flag(p.s.Deaf())}, places...)...)
}

func (p *primitive) ForceUnlock(string) rlock.Command {
	return p.command(forceUnlockScript, idgen.Request())
}

func (p *primitive) waiters() rlock.Command {
	return rlock.Command{Script: waitersScript, Keys: p.keys[2:3]}
}

// flag is a bool for a script.
func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// ms is a duration for a script: whole milliseconds, rounded up.
func ms(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
