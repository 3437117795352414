package rwlock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/engine"
	"relock/internal/mutex"
	"relock/rlock"
)

// RWMutex is a handle of a reentrant lock with two sides: readers share it, and a writer is alone,
// among all processes that use the same Redis, Java processes with Redisson's RReadWriteLock
// included. It is made without I/O, and as good as any other of its name and session. Safe for
// concurrent use.
type RWMutex struct {
	handle engine.Handle // of the read side, and for calls
	writer engine.Handle
	read   *readSide // what handle locks; nil in a zero value
}

// New returns the read-write lock with that name. It does no I/O: the first operation reports an
// empty name ([rlock.ErrName]), a nil session ([rlock.ErrArgument]) or an option that is not [rlock.Keep], which is for
// the write side ([rlock.ErrArgument]).
func New(s *rlock.Session, name string, opts ...rlock.MutexOption) *RWMutex {
	session := (*engine.Session)(s)
	names, err := session.Names(name)
	o, bad := mutex.CollectOptions(opts)
	switch {
	case err != nil:
	case bad != nil:
		err = bad
	case o.Fenced:
		err = fmt.Errorf("%w: Fenced on a read-write lock; its only option is Keep", rlock.ErrArgument)
	default:
		err = o.CheckKeep(session)
	}
	floor := rlock.DefaultPollFloor
	if err == nil {
		floor = session.Config().PollFloor
	}
	read, write := newSides(names, floor)
	m := &RWMutex{handle: engine.NewHandle(session, read.Names(), read, err), writer: engine.NewHandle(session, write.Names(), write, err), read: read}
	m.writer.KeepFor(o.Keep)
	return m
}

// Name returns the name that New was given, without Config.Prefix; "" for a zero value.
func (m *RWMutex) Name() string {
	if m == nil || m.read == nil {
		return ""
	}
	return m.read.Names().Name()
}

// Session returns the session that New was given; nil for a zero value.
func (m *RWMutex) Session() *rlock.Session {
	if m == nil {
		return nil
	}
	return (*rlock.Session)(m.handle.Session())
}

// RLock is [rlock.Mutex.Lock] for the read side. On the context of an open section of this lock, of
// either side, it re-enters. An outermost RLock waits while another owner holds the write side, and
// also behind a writer that waits for readers to leave.
//
// It blocks, and fails, as that Lock does. The context ends with the cause [rlock.ErrReleased] when
// the owner's last hold of either side is unlocked. On error nothing new is held.
func (m *RWMutex) RLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return m.lock(ctx, reading, true, opts)
}

// TryRLock is RLock without the waiting, as [rlock.Mutex.TryLock]: where RLock would have to wait
// it returns [rlock.ErrNotAcquired]. It does so too while a writer waits, although only readers
// hold the lock.
func (m *RWMutex) TryRLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return m.lock(ctx, reading, false, opts)
}

// Lock is [rlock.Mutex.Lock] for the write side. Its owner may take either side again, and may
// unlock the write side while it keeps the read side. An owner that holds only the read side gets
// [ErrUpgrade] at once, and the read side stays held. The context ends as that of RLock.
func (m *RWMutex) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return m.lock(ctx, writing, true, opts)
}

// TryLock is Lock without the waiting, as [rlock.Mutex.TryLock]: if another owner holds either side
// it returns [rlock.ErrNotAcquired], and keeps no reader out.
func (m *RWMutex) TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return m.lock(ctx, writing, false, opts)
}

// RDo is [rlock.Mutex.Do] with the read side, and with RLock's errors.
func (m *RWMutex) RDo(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error {
	return m.do(ctx, reading, fn, opts)
}

// Do is [rlock.Mutex.Do] with the write side, and with Lock's errors.
func (m *RWMutex) Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error {
	return m.do(ctx, writing, fn, opts)
}

// side is one of the two.
type side int

const (
	reading side = iota
	writing
)

func (m *RWMutex) lock(ctx context.Context, side side, wait bool, opts []rlock.LockOption) (context.Context, *rlock.Hold, error) {
	op := "lock"
	if !wait {
		op = "try lock"
	}
	if err := m.check(ctx, op); err != nil {
		return ctx, nil, err
	}
	section, h, err := m.side(side).Lock(ctx, 1, wait, opts)
	return section, (*rlock.Hold)(h), err
}

func (m *RWMutex) do(ctx context.Context, side side, fn func(context.Context) error, opts []rlock.LockOption) error {
	if err := m.check(ctx, "do"); err != nil {
		return err
	}
	return m.side(side).Do(ctx, 1, fn, opts)
}

func (m *RWMutex) side(side side) *engine.Handle {
	if side == writing {
		return &m.writer
	}
	return &m.handle
}

// usable returns why the handle cannot be used, if it cannot.
func (m *RWMutex) usable(op string) error {
	if m == nil || m.read == nil {
		return fmt.Errorf("%s: %w: the lock is a zero value; make one with New", op, rlock.ErrArgument)
	}
	return m.handle.Calls().Check(op, nil)
}

// check is usable for what acquires: it also refuses owner ids that would be taken for
// another field of the hash. A nil ctx is the machine's to report.
func (m *RWMutex) check(ctx context.Context, op string) error {
	if err := m.usable(op); err != nil || ctx == nil {
		return err
	}
	if id, _ := rlock.OwnerFrom(ctx); id == "mode" || strings.HasSuffix(id, ":write") {
		return api.Wrap(op, m.read.Names().Name(), fmt.Errorf(
			"%w: owner %s; in a read-write lock it must not be \"mode\" or end in \":write\", the names of fields of the lock",
			rlock.ErrArgument, api.Quote(id)))

	}
	return nil
}

// State is a read-write lock as Redis sees it.
type State struct {
	// Mode is "read", "write", or "" when the lock is free. A writer that holds the read
	// side too is "write".
	Mode string
	// Owners has the hold count of each owner, both sides added. Readers of one session
	// that share a read hold are one owner. Readers whose lease is over are not included.
	Owners map[string]int
	// TTL is what is left of the longest lease; 0 when free.
	TTL time.Duration
}

// State asks Redis, in one round trip, who holds the lock, on which side, how deep, and for how
// long. The answer may be out of date when it returns.
func (m *RWMutex) State(ctx context.Context) (State, error) {
	if err := m.usable("state"); err != nil {
		return State{}, err
	}
	var st State
	err := m.handle.Calls().Call(ctx, "state", m.read.state(), func(r rueidis.RedisResult) (err error) {
		st, err = decodeState(r)
		return err
	})
	return st, err
}

// Waiters is [rlock.Mutex.Waiters] for the callers of both sides.
func (m *RWMutex) Waiters(ctx context.Context) (int, error) {
	if err := m.usable("waiters"); err != nil {
		return 0, err
	}
	return m.handle.Calls().Waiters(ctx, m.read.waiters)
}

// ForceUnlock is [rlock.Mutex.ForceUnlock] for both sides and all owners: it ends all holds if one
// of the owners that it has found still has one. It blocks for two round trips, and two for each
// owner whose sessions are told.
func (m *RWMutex) ForceUnlock(ctx context.Context) (bool, error) {
	if err := m.usable("force unlock"); err != nil {
		return false, err
	}
	return m.handle.ForceUnlock(ctx, m.read.forceUnlock)
}
