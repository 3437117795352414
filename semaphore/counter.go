package semaphore

import (
	"context"
	"fmt"

	"relock/internal/calls"
	"relock/internal/engine"
	"relock/internal/script"
	"relock/rlock"
)

// Counter is the classic counting semaphore: a number that Acquire takes from and Release adds to.
// It has no owners and no leases: any process may release, and what a process that died had taken
// stays taken. It is a handle, of one number for all processes that use the same Redis, Java
// processes with Redisson's RSemaphore included. Config.Replicas does not concern it. Safe for
// concurrent use.
type Counter struct {
	handle engine.Handle
	p      *count
}

// NewCounter returns the counter with that name. It does no I/O: the first operation reports an
// empty name ([rlock.ErrName]), a nil session or a bad option ([rlock.ErrArgument]).
func NewCounter(s *rlock.Session, name string, opts ...Option) *Counter {
	session := (*engine.Session)(s)
	names, err := session.Names(name)
	o, bad := collect(opts)
	if err == nil {
		err = bad
	}
	p := newCount(session, names, o.end)
	return &Counter{handle: engine.NewHandle(session, p.Names(), p, err), p: p}
}

// TrySet makes the counter with so many permits, at least 0, if it does not exist yet, and reports
// whether it did. A counter that does not exist counts as 0, and Release and Add make it. TrySet
// blocks and fails as Release does.
func (c *Counter) TrySet(ctx context.Context, permits int) (bool, error) {
	if err := c.usable("try set", atLeast("permits", permits, 0)); err != nil {
		return false, err
	}
	made, err := c.publish(ctx, "try set", trySetScript, permits)
	return made == 1, err
}

// Acquire waits until the counter has n and takes them, all at once. Requests of this session for
// this name are served in the order of arrival. Acquire blocks and fails as [rlock.Mutex.Lock]
// does; [rlock.ErrArgument] also if n is below 1, and for [rlock.Lease]: nothing is leased. On
// error nothing was taken: what may have been, unseen, is given back in the background.
func (c *Counter) Acquire(ctx context.Context, n int, opts ...rlock.LockOption) error {
	if err := c.usable("acquire", atLeast("n", n, 1)); err != nil {
		return err
	}
	_, _, err := c.handle.Lock(ctx, n, true, opts)
	return err
}

// TryAcquire is Acquire without the waiting, as [rlock.Mutex.TryLock]: [rlock.ErrNotAcquired] if
// the counter has less than n, or others of this session wait for it.
func (c *Counter) TryAcquire(ctx context.Context, n int) error {
	if err := c.usable("try acquire", atLeast("n", n, 1)); err != nil {
		return err
	}
	_, _, err := c.handle.Lock(ctx, n, false, nil)
	return err
}

// Release adds n, at least 1, to the counter, making it if need be, and wakes waiters. It does not
// ask which process took what. It blocks for one round trip, and tries again for at most
// Config.ReleaseTimeout while the answer is lost. After [rlock.ErrUnavailable] it has counted once
// or not at all.
func (c *Counter) Release(ctx context.Context, n int) error {
	if err := c.usable("release", atLeast("n", n, 1)); err != nil {
		return err
	}
	_, err := c.publish(ctx, "release", addScript, n)
	return err
}

// Add is Release, but n may also be negative: that takes permits away without waiting for them, and
// may leave a number below 0. An n of 0 changes nothing.
func (c *Counter) Add(ctx context.Context, n int) error {
	if n == 0 {
		_, err := c.value(ctx, "add")
		return err
	}
	if err := c.usable("add", atLeast("n", n, -most)); err != nil {
		return err
	}
	_, err := c.publish(ctx, "add", addScript, n)
	return err
}

// Drain takes all that the counter has and returns how many they were: what Available would have
// said. A number below 0 is raised to 0, and returned as it was. Drain blocks and fails as Release
// does.
func (c *Counter) Drain(ctx context.Context) (int, error) {
	if err := c.usable("drain", nil); err != nil {
		return 0, err
	}
	had, err := c.change(ctx, "drain", drainScript)
	return int(had), err
}

// Delete deletes the counter: it counts as 0 again, and TrySet makes it anew. Waiters go on
// waiting. Delete blocks and fails as Release does.
//
// Warning: permits of the old counter can come into the new one. What an Acquire or TryAcquire took that ended without
// an answer of Redis is given back in the background, mostly at once, and for a minute at most while Redis is not
// reached. If the counter is deleted and made anew in between, by TrySet, Release or Add, the new one has those permits
// too many for good; so it is with a counter that [Expire] has ended. Delete a counter when no Acquire has failed
// within the last minute, or make the new one under another name.
func (c *Counter) Delete(ctx context.Context) error {
	if err := c.usable("delete", nil); err != nil {
		return err
	}
	_, err := c.change(ctx, "delete", deleteCounterScript)
	return err
}

// Available asks Redis, in one round trip, for the counter's value: 0 if it does not exist; below 0
// if Add has taken more away than there was. The answer may be out of date when it returns.
func (c *Counter) Available(ctx context.Context) (int, error) { return c.value(ctx, "available") }

// Waiters returns how many callers of all sessions wait, as [Semaphore.Waiters] does.
func (c *Counter) Waiters(ctx context.Context) (int, error) {
	if err := c.usable("waiters", nil); err != nil {
		return 0, err
	}
	return c.p.waiters(ctx, c.handle.Calls())
}

func (c *Counter) value(ctx context.Context, op string) (int, error) {
	if err := c.usable(op, nil); err != nil {
		return 0, err
	}
	var value int64
	err := c.handle.Calls().Call(ctx, op, script.Command{Script: countScript, Keys: c.p.keys()[:2]}, calls.Integer(&value))
	return int(value), err
}

// usable returns why the handle or an argument cannot be used.
func (c *Counter) usable(op string, bad error) error {
	if c == nil || c.p == nil {
		return fmt.Errorf("%s: %w: the counter is a zero value; make one with NewCounter", op, rlock.ErrArgument)
	}
	return c.handle.Calls().Check(op, bad)
}

// publish runs a script that changes the counter by n, or to n, once, and lets in those who wait.
func (c *Counter) publish(ctx context.Context, op string, sc *script.Script, n int) (reply int64, err error) {
	names := c.p.Names()
	err = c.handle.Calls().CallOnce(ctx, op, func(id string) script.Command {
		return c.p.lined(c.p.once(sc, c.p.keys(), id, script.Itoa(int64(n)), c.p.Channel(), names.Publish, names.Counts))
	}, calls.Integer(&reply))
	return reply, err
}

// change runs a script that must count once.
func (c *Counter) change(ctx context.Context, op string, sc *script.Script, args ...string) (reply int64, err error) {
	err = c.handle.Calls().CallOnce(ctx, op, func(id string) script.Command {
		return c.p.once(sc, c.p.keys(), id, args...)
	}, calls.Integer(&reply))
	return reply, err
}
