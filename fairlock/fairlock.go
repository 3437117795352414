package fairlock

import (
	"context"
	"fmt"
	"sync"

	"relock/internal/engine"
	"relock/internal/mutex"
	"relock/rlock"
)

// Mutex is a reentrant lock under one name, exclusive among all processes that use the same Redis,
// and granted in the order of arrival across all of them. It has the methods of [rlock.Mutex], with
// the same types and errors, and is a handle like that. Safe for concurrent use.
type Mutex struct {
	*rlock.Mutex
}

// New returns the fair mutex with that name, as [rlock.New] does and with the same options, but for [rlock.Keep], which
// is [rlock.ErrArgument]: who comes first is served first, in whatever session.
func New(s *rlock.Session, name string, opts ...rlock.MutexOption) *Mutex {
	session := (*engine.Session)(s)
	names, err := session.Names(name)
	o, bad := mutex.CollectOptions(opts)
	if err == nil {
		err = bad
	}
	if err == nil && o.Keeps {
		err = fmt.Errorf("%w: Keep on a fair lock; it is for plain locks and the write side of a read-write lock", rlock.ErrArgument)
	}
	return &Mutex{(*rlock.Mutex)(mutex.NewHandle(session, mutex.NewFair(names, o.Fencing), 0, err))}
}

// base is the Mutex that does the work; nil, which reports itself, if m is nil.
func (m *Mutex) base() *rlock.Mutex {
	if m == nil {
		return nil
	}
	return m.Mutex
}

// Lock is [rlock.Mutex.Lock], but queues in Redis, unless it is nested. If Redis answers, a caller
// that gives up has left the queue when Lock returns.
func (m *Mutex) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return m.base().Lock(ctx, opts...)
}

// TryLock is [rlock.Mutex.TryLock], but never overtakes a waiter: it returns [rlock.ErrNotAcquired]
// while the lock is held or waited for.
func (m *Mutex) TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return m.base().TryLock(ctx, opts...)
}

// Do is [rlock.Mutex.Do].
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error {
	return m.base().Do(ctx, fn, opts...)
}

// State is [rlock.Mutex.State].
func (m *Mutex) State(ctx context.Context) (rlock.State, error) { return m.base().State(ctx) }

// ForceUnlock is [rlock.Mutex.ForceUnlock]; the first waiter gets the lock.
func (m *Mutex) ForceUnlock(ctx context.Context) (bool, error) { return m.base().ForceUnlock(ctx) }

// Locker is [rlock.Mutex.Locker].
func (m *Mutex) Locker(ctx context.Context) sync.Locker { return m.base().Locker(ctx) }

// Waiters returns how many callers, of all sessions, stand in the queue. A waiter that died is
// counted until it has been silent for its session's Config.QueueLease. Waiters blocks for one
// round trip, and one more for each 300 sessions or so that wait; the answer may be out of date when it returns.
func (m *Mutex) Waiters(ctx context.Context) (int, error) {
	return m.base().Waiters(ctx)
}
