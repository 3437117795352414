package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/engine"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/rlock"
)

// Semaphore is a counting semaphore under one name whose permits are leased: those of a process
// that died come back by themselves. It bounds all processes that use the same Redis, Java
// processes with Redisson's RPermitExpirableSemaphore included. It is a handle, as good as any
// other of its name, session and limit. Safe for concurrent use.
type Semaphore struct {
	handle engine.Handle
	p      *permits
}

// New returns the semaphore with that name. The limit is set in Redis on first use; later, the
// limit in Redis wins, until [Semaphore.SetLimit] changes it for all processes. The session's Logger is
// warned once of a limit in Redis that shows to be another one. New does no I/O:
// the first operation reports an empty name ([rlock.ErrName]), a nil session, a limit below 1 or a
// bad option ([rlock.ErrArgument]).
//
// The number of free permits stays in Redis for ever, as Redisson's does, unless the semaphore is
// given an end by [Expire], or [Semaphore.Delete] is called.
func New(s *rlock.Session, name string, limit int, opts ...Option) *Semaphore {
	session := (*engine.Session)(s)
	names, err := session.Names(name)
	if err == nil {
		err = atLeast("the limit", limit, 1)
	}
	o, bad := collect(opts)
	if err == nil {
		err = bad
	}
	p := newPermits(session, names, limit, o.end)
	m := &Semaphore{handle: engine.NewHandle(session, p.Names(), p, err), p: p}
	p.told = kind.Limit{Given: int64(limit), Other: p.otherLimit(m.handle.Calls())}
	return m
}

// Name returns the name that New was given, without Config.Prefix; "" for a zero value.
func (m *Semaphore) Name() string {
	if m == nil || m.p == nil {
		return ""
	}
	return m.p.Names().Name()
}

// Session returns the session that New was given; nil for a zero value.
func (m *Semaphore) Session() *rlock.Session {
	if m == nil {
		return nil
	}
	return (*rlock.Session)(m.handle.Session())
}

// Acquire waits until it has n permits, all at once. Requests of this session for this name are
// served in the order of arrival, so a large one is not starved by small ones.
//
// The returned context is the section's, as that of [rlock.Mutex.Lock]. But permits belong to one
// Acquire: the owner and sections of ctx stay as they are for locks that are taken inside. Warning:
// a nested Acquire takes further permits, and waits for ever if there are none.
//
// Acquire blocks and fails as Lock does; and with [ErrLimit] at once if n is below 1 or more than
// the limit or [MaxAtOnce], or as soon as the limit is lowered below n. On error the returned
// context is ctx, the permits are nil, and nothing is held: what may have been granted unseen is
// given back in the background.
func (m *Semaphore) Acquire(ctx context.Context, n int, opts ...rlock.LockOption) (context.Context, *Permits, error) {
	return m.acquire(ctx, n, true, opts)
}

// TryAcquire is Acquire without the waiting, as [rlock.Mutex.TryLock]: [rlock.ErrNotAcquired] if n
// permits are not free, or others of this session wait for permits. It takes one round trip more if
// n is beyond the limit that this handle knows.
func (m *Semaphore) TryAcquire(ctx context.Context, n int, opts ...rlock.LockOption) (context.Context, *Permits, error) {
	return m.acquire(ctx, n, false, opts)
}

func (m *Semaphore) acquire(ctx context.Context, n int, wait bool, opts []rlock.LockOption) (context.Context, *Permits, error) {
	op := "acquire"
	if !wait {
		op = "try acquire"
	}
	if err := m.possible(ctx, op, n, wait, opts); err != nil {
		return ctx, nil, err
	}
	section, h, err := m.handle.Lock(ctx, n, wait, opts)
	return section, (*Permits)(h), err
}

// Do runs fn while holding n permits, as [rlock.Mutex.Do], with Acquire's errors.
func (m *Semaphore) Do(ctx context.Context, n int, fn func(context.Context) error, opts ...rlock.LockOption) error {
	if err := m.possible(ctx, "do", n, true, opts); err != nil {
		return err
	}
	return m.handle.Do(ctx, n, fn, opts)
}

// MaxAtOnce is how many permits one request may be for; more is [ErrLimit]. Each has an entry of
// its own in Redis, and ten thousand of them keep it busy for less than a tenth of a second. A
// [Counter] has no such bound.
const MaxAtOnce = 10_000

// usable returns why the handle cannot be used, if it cannot.
func (m *Semaphore) usable(op string) error {
	if m == nil || m.p == nil {
		return fmt.Errorf("%s: %w: the semaphore is a zero value; make one with New", op, rlock.ErrArgument)
	}
	return m.handle.Calls().Check(op, nil)
}

// wrap puts the operation and the name in front of err, if there is one.
func (m *Semaphore) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return api.Wrap(op, m.p.Names().Name(), err)
}

// possible returns why n permits can never be had, as far as that can be told before the
// request is in the session's queue. There the answer to the next attempt tells it.
func (m *Semaphore) possible(ctx context.Context, op string, n int, wait bool, opts []rlock.LockOption) error {
	if err := m.usable(op); err != nil {
		return err
	}
	switch {
	case n < 1:
		return m.wrap(op, fmt.Errorf("%w: n is %d; it must be at least 1", ErrLimit, n))
	case n > MaxAtOnce:
		return m.wrap(op, fmt.Errorf("%w: n is %d; one request is for at most %d permits", ErrLimit, n, MaxAtOnce))
	case int64(n) <= m.p.known.Load():
		return nil
	}
	// The limit may have been raised in the meantime.
	bound := m.handle.Session().Config().TryTimeout()
	o, _ := api.Collect(opts) // what is wrong with them the attempt says
	if wait = wait && !(o.Bounded && o.Wait == 0); wait && o.Bounded {
		bound = min(bound, o.Wait)
	}
	_, limit, err := m.stateWithin(ctx, bound, op)
	switch {
	case err == nil && n > limit:
		return m.wrap(op, fmt.Errorf("%w: n is %d, and the limit %d", ErrLimit, n, limit))
	case !wait && errors.Is(err, rlock.ErrUnavailable):
		return err
	}
	return nil // any other error shows when the permits are asked for
}

// Available asks Redis, in one round trip, how many permits are free, never less than 0. Expired
// ones count, and are given back on the way. The answer may be out of date when it returns.
func (m *Semaphore) Available(ctx context.Context) (int, error) {
	free, _, err := m.state(ctx, "available")
	return max(0, free), err
}

// Waiters returns how many callers of all sessions wait for permits, as of each session's last look, which is no
// older than its Config.PollFloor. Callers of sessions that cannot be told anything, and Redisson's, are not among
// them. It blocks for one round trip, and one more for each 300 sessions or so that wait.
func (m *Semaphore) Waiters(ctx context.Context) (int, error) {
	if err := m.usable("waiters"); err != nil {
		return 0, err
	}
	return m.p.waiters(ctx, m.handle.Calls())
}

// Limit asks Redis, in one round trip, for the limit: the one that New was given, if this is the
// first use. The answer may be out of date when it returns.
func (m *Semaphore) Limit(ctx context.Context) (int, error) {
	_, limit, err := m.state(ctx, "limit")
	return limit, err
}

// state asks Redis; free may be below 0.
func (m *Semaphore) state(ctx context.Context, op string) (free, limit int, err error) {
	if err := m.usable(op); err != nil {
		return 0, 0, err
	}
	return m.stateWithin(ctx, m.handle.Session().Config().ReleaseTimeout, op)
}

func (m *Semaphore) stateWithin(ctx context.Context, bound time.Duration, op string) (free, limit int, err error) {
	err = m.handle.Calls().CallWithin(ctx, bound, op, m.p.state(), func(r rueidis.RedisResult) error {
		reply, err := r.AsIntSlice()
		if err != nil {
			return err
		}
		if len(reply) != 2 {
			return fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
		}
		free, limit = int(reply[0]), int(reply[1])
		return nil
	})
	if err == nil {
		m.p.known.Store(int64(limit))
	}
	return free, limit, err
}

// SetLimit sets the limit, at least 0, for all processes. Permits that are held stay held: a limit
// below their number keeps others out until enough have been released. Waiters that may go on are
// woken; those that now ask for more than the limit get [ErrLimit]. A limit of 0 lets no request
// in.
//
// SetLimit blocks for one round trip, and tries again for at most Config.ReleaseTimeout. After
// [rlock.ErrUnavailable] the limit may have been set or not: the call may still arrive, and undo
// what another session has set since. Of one session the last SetLimit wins, also if a copy of an
// earlier one arrives late.
func (m *Semaphore) SetLimit(ctx context.Context, limit int) error {
	const op = "set limit"
	if err := m.usable(op); err != nil {
		return err
	}
	if err := atLeast("the limit", limit, 0); err != nil {
		return m.wrap(op, err)
	}
	m.p.mine.Store(true)
	err := m.handle.Calls().CallOnce(ctx, op, func(id string) script.Command { return m.p.setLimit(limit, id) },
		func(r rueidis.RedisResult) error { return r.Error() })
	if err == nil {
		m.p.known.Store(int64(limit))
	}
	return err
}

// Delete deletes the semaphore with all its permits. Sections that hold some end with
// [rlock.ErrLost] at their next renewal. Before that other callers may enter beside them: the next
// request makes the semaphore anew, with the limit of its handle. Waiters are woken.
//
// Delete blocks and fails as SetLimit does. One that arrives late deletes nothing if the same
// session has called SetLimit or Delete since.
func (m *Semaphore) Delete(ctx context.Context) error {
	const op = "delete"
	if err := m.usable(op); err != nil {
		return err
	}
	return m.handle.Calls().CallOnce(ctx, op, m.p.deletion, func(r rueidis.RedisResult) error { return r.Error() })
}
