package fairlock

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"relock/rlock"
)

// Mutex is a reentrant lock under one name, exclusive among all processes that use the
// same Redis, and given to its waiters in the order in which they came, whatever process
// they are in. It has all the methods of [rlock.Mutex], with the same types and errors,
// and is, like that, a handle: made without I/O, safe for concurrent use, and as good as
// any other of the same name and session.
//
// Lock queues in Redis and blocks until it is this caller's turn, ctx ends, or the time
// given with [rlock.Wait] is over; whoever leaves without the lock has left the queue when
// Lock returns, if Redis answers. TryLock never overtakes a waiter: it returns
// [rlock.ErrNotAcquired] while somebody holds the lock or waits for it. A nested Lock of an
// owner that holds the lock does not queue. ForceUnlock ends the hold, and the first
// waiter gets the lock.
type Mutex struct {
	*rlock.Mutex
	s   *rlock.Session
	p   *primitive
	err error
}

// New returns the fair mutex with that name. It does no I/O and does not fail; a bad name
// (empty: [rlock.ErrName]) or session is reported by the first operation.
//
// Options are those of [rlock.New]; with [rlock.Fenced] every acquisition draws a
// token.
func New(s *rlock.Session, name string, opts ...rlock.MutexOption) *Mutex {
	p, err := newPrimitive(s, name, opts)
	return &Mutex{Mutex: rlock.NewMutex(s, p, err), s: s, p: p, err: err}
}

// Waiters returns how many callers, of all sessions, stand in the queue. One that died is
// counted until it has been silent for its session's Config.QueueLease. It blocks for one
// round trip; by the time it returns the answer may be out of date. Errors:
// [rlock.ErrArgument], [rlock.ErrName], [rlock.ErrClosed], ctx's or the client's.
func (m *Mutex) Waiters(ctx context.Context) (int, error) {
	switch {
	case m.err != nil:
		return 0, fmt.Errorf("waiters %q: %w", m.p.Name(), m.err)
	case ctx == nil:
		return 0, fmt.Errorf("waiters %q: %w: ctx is nil; use context.Background()", m.p.Name(), rlock.ErrArgument)
	}
	var n int64
	err := m.s.Call(ctx, "waiters", m.p, m.p.waiters(), func(r rueidis.RedisResult) (err error) {
		n, err = r.AsInt64()
		return err
	})
	return int(n), err
}
