package semaphore

import (
	"context"
	_ "embed"

	"github.com/redis/rueidis"

	"relock/internal/idgen"
	"relock/rlock"
)

//go:embed lua/take.lua
var takeLua string

//go:embed lua/untake.lua
var untakeLua string

//go:embed lua/add.lua
var addLua string

//go:embed lua/drain.lua
var drainLua string

//go:embed lua/try_set.lua
var trySetLua string

//go:embed lua/count.lua
var countLua string

var (
	takeScript   = rlock.NewScript(takeLua)
	untakeScript = rlock.NewScript(untakeLua)
	addScript    = rlock.NewScript(addLua)
	drainScript  = rlock.NewScript(drainLua)
	trySetScript = rlock.NewScript(trySetLua)
	countScript  = rlock.NewScript(countLua)
)

// Counter is the classic counting semaphore: a number that Acquire takes from and Release
// adds to. It has no owners and no leases: anybody may release, and what a process that
// died had taken stays taken. It is shared by all processes that use the same Redis, Java
// processes with Redisson's RSemaphore included. A handle: made without I/O, safe for
// concurrent use, and as good as any other of the same name and session.
//
// Where no error says otherwise, each call counts once, also when its answer was lost and
// it had to be sent again. After an error of the client ("no answer in time") of Release,
// Add, Drain or TrySet it has counted once or not at all.
type Counter struct {
	s   *rlock.Session
	p   *count
	err error
}

// NewCounter returns the counter with that name. It does no I/O and does not fail; a bad
// name (empty: [rlock.ErrName]) or session is reported by the first operation.
func NewCounter(s *rlock.Session, name string) *Counter {
	n, err := s.Names(name)
	return &Counter{s: s, p: &count{names: newNames(n)}, err: err}
}

// TrySet makes the counter with so many permits, if it does not exist yet, and reports
// whether it did. A counter that does not exist counts as 0, and Release and Add make it;
// so permits below 1 are [rlock.ErrArgument]. It blocks for one round trip.
func (c *Counter) TrySet(ctx context.Context, permits int) (bool, error) {
	if err := c.usable(atLeast("permits", permits, 1)); err != nil {
		return false, wrap("try set", c.p.Name(), err)
	}
	var made int64
	err := c.change(ctx, "try set", trySetScript, []string{itoa(permits), c.p.names.channel, c.p.names.Publish()}, &made)
	return made == 1, err
}

// Acquire waits until the counter has n and takes them, all at once. Requests of this
// session for this name are served in the order in which they came.
//
// It blocks until then or until ctx ends; [rlock.Wait] bounds it too. ([rlock.Lease] is
// [rlock.ErrArgument]: nothing is leased.) While Redis cannot be reached it keeps trying. Errors:
// [rlock.ErrArgument] if n is below 1; [rlock.ErrNotAcquired] when the wait is over, together
// with ctx's error if that was why and with the client's if Redis did not answer; ctx's
// error alone if it was done before the call (nothing was sent); [rlock.ErrClosed],
// [rlock.ErrName]; Redis's own error, WRONGTYPE above all, when it refuses the command. On
// error nothing was taken: what may have been, unseen, is given back in the background.
func (c *Counter) Acquire(ctx context.Context, n int, opts ...rlock.LockOption) error {
	if err := c.usable(atLeast("n", n, 1)); err != nil {
		return wrap("acquire", c.p.Name(), err)
	}
	_, _, err := c.s.Lock(ctx, c.p.of(n), opts...)
	return err
}

// TryAcquire is Acquire without the waiting: if the counter has less than n, or others of
// this session wait for it, it returns [rlock.ErrNotAcquired], after one round trip at most.
// Only when the answer to that is lost does it ask again. When Redis cannot be reached it
// returns the client's error.
func (c *Counter) TryAcquire(ctx context.Context, n int) error {
	if err := c.usable(atLeast("n", n, 1)); err != nil {
		return wrap("try acquire", c.p.Name(), err)
	}
	_, _, err := c.s.TryLock(ctx, c.p.of(n))
	return err
}

// Release adds n to the counter, making it if need be, and wakes waiters. It does not ask
// who took what. It blocks for one round trip, and tries again for at most
// Config.ReleaseTimeout while the answer is lost. Errors: [rlock.ErrArgument] if n is below
// 1; [rlock.ErrClosed], [rlock.ErrName]; ctx's error if it was done before the call
// (nothing was sent); else the client's or Redis's own.
func (c *Counter) Release(ctx context.Context, n int) error {
	if err := c.usable(atLeast("n", n, 1)); err != nil {
		return wrap("release", c.p.Name(), err)
	}
	return c.add(ctx, "release", n)
}

// Add is Release, but n may also be negative: that takes permits away without waiting for
// them, and may leave a number below 0. An n of 0 changes nothing.
func (c *Counter) Add(ctx context.Context, n int) error {
	if err := c.usable(atLeast("n", n, -most)); err != nil {
		return wrap("add", c.p.Name(), err)
	}
	if n == 0 {
		_, err := c.value(ctx, "add")
		return err
	}
	return c.add(ctx, "add", n)
}

// Drain takes all that the counter has and returns how many they were: what Available
// would have said, so a negative number if it was below 0, which is raised to 0 then. It
// blocks and fails as Release does.
func (c *Counter) Drain(ctx context.Context) (int, error) {
	if err := c.usable(nil); err != nil {
		return 0, wrap("drain", c.p.Name(), err)
	}
	var had int64
	err := c.change(ctx, "drain", drainScript, nil, &had)
	return int(had), err
}

// Available asks Redis for the counter's value: 0 if it does not exist; below 0 if Add has
// taken more away than there was. It blocks for one round trip; by the time it returns the
// answer may be out of date.
func (c *Counter) Available(ctx context.Context) (int, error) {
	if err := c.usable(nil); err != nil {
		return 0, wrap("available", c.p.Name(), err)
	}
	return c.value(ctx, "available")
}

func (c *Counter) value(ctx context.Context, op string) (int, error) {
	var value int64
	cmd := rlock.Command{Script: countScript, Keys: c.p.names.both[:1]}
	err := c.s.Call(ctx, op, c.p, cmd, integer(&value))
	return int(value), err
}

// usable returns the handle's own error, or else that of an argument.
func (c *Counter) usable(bad error) error {
	if c.err != nil {
		return c.err
	}
	return bad
}

func (c *Counter) add(ctx context.Context, op string, n int) error {
	var changed int64
	return c.change(ctx, op, addScript, []string{itoa(n), c.p.names.channel, c.p.names.Publish()}, &changed)
}

// change runs a script that must count once. The session sends it again for no longer
// than its release timeout.
func (c *Counter) change(ctx context.Context, op string, script *rlock.Script, args []string, reply *int64) error {
	cmd := rlock.Command{
		Script: script,
		Keys:   c.p.request(idgen.Request()),
		Args:   append(args, millis(c.s.Config().ReleaseTimeout+rlock.Memory)),
	}
	return c.s.Call(ctx, op, c.p, cmd, integer(reply))
}

// integer decodes an integer, also one in decimal digits.
func integer(to *int64) func(rueidis.RedisResult) error {
	return func(r rueidis.RedisResult) (err error) {
		*to, err = r.AsInt64()
		return err
	}
}

// count is the rlock.Primitive for taking n from a counter.
type count struct {
	names names
	n     int
}

var _ rlock.Sized = (*count)(nil)

func (p *count) of(n int) *count { return &count{p.names, n} }

func (p *count) Name() string    { return p.names.Name() }
func (p *count) Key() string     { return p.names.Key() }
func (p *count) Channel() string { return p.names.channel }
func (p *count) Part() int       { return 0 }
func (p *count) Size() int64     { return int64(p.n) }

// Traits: what is taken is nobody's.
func (p *count) Traits() rlock.Traits { return rlock.Traits{Fleeting: true, Orderly: true} }

// remembered is for how long Redis knows that a request was made, or given up: while it is
// sent again, while it is taken back, which is tried for as long, and as long for what comes
// late.
const remembered = 3 * rlock.Memory

// request returns the keys of a request: the counter's, and one that remembers it.
func (p *count) request(id string) []string {
	return []string{p.Key(), p.names.Prefixed("relock_request") + ":" + id}
}

// Acquire is take.lua.
func (p *count) Acquire(op *rlock.Op) rlock.Command {
	return rlock.Command{Script: takeScript, Keys: p.request(op.ID), Args: []string{itoa(p.n), millis(remembered)}}
}

// Release is untake.lua: it takes back a request whose outcome is unknown.
func (p *count) Release(op *rlock.Op) rlock.Command {
	return rlock.Command{Script: untakeScript, Keys: p.request(op.Ends[0]), Args: []string{
		p.names.channel, p.names.Publish(), millis(remembered),
	}}
}

// Extend, Renew and RenewArgs are not called: nothing is held.
func (p *count) Extend(*rlock.Op) rlock.Command { panic("semaphore: a counter has nothing to extend") }
func (p *count) Renew() *rlock.Script           { panic("semaphore: a counter has nothing to renew") }
func (p *count) RenewArgs(string, int, bool) (keys, args []string) {
	panic("semaphore: a counter has nothing to renew")
}
