package semaphore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/rlock"
)

// Semaphore is a counting semaphore under one name whose permits are leased: those of a
// process that died come back by themselves. It bounds all processes that use the same
// Redis, Java processes with Redisson's RPermitExpirableSemaphore included. It is a
// handle: made without I/O, safe for concurrent use, and as good as any other of the same
// name, session and limit.
type Semaphore struct {
	s     *rlock.Session
	names names
	limit int
	err   error

	// known is the limit in Redis by what this handle has heard; see tooMany.
	known atomic.Int64
}

// New returns the semaphore with that name. The limit is set in Redis on first use; after
// that what Redis holds wins, until [Semaphore.SetLimit] changes it for everybody. New does
// no I/O and does not fail; a bad name (empty: [rlock.ErrName]), session or limit (below
// 1: [rlock.ErrArgument]) is reported by the first operation.
func New(s *rlock.Session, name string, limit int) *Semaphore {
	n, err := s.Names(name)
	if err == nil {
		err = atLeast("the limit", limit, 1)
	}
	m := &Semaphore{s: s, names: newNames(n), limit: limit, err: err}
	m.known.Store(int64(limit))
	return m
}

// Acquire waits until it has n permits, all at once. Requests of this session for this
// name are served in the order in which they came.
//
// The returned context is the critical section's: derived from ctx, and cancelled with a
// cause ([context.Cause]): [rlock.ErrLost] when the permits are lost, [rlock.ErrClosed]
// when the session closes, [rlock.ErrReleased] when they are released. Permits belong to
// one Acquire: whatever owner ctx carries stays the owner for locks that are taken inside,
// and a nested Acquire takes further permits (and waits for ever if they are not there). The
// watchdog renews the lease for as long as ctx lives; with [rlock.Lease] it does not.
//
// Acquire blocks until it has the permits or ctx ends; use [rlock.Wait] to bound only the
// waiting. While Redis cannot be reached it keeps trying. Errors: [ErrLimit] at once if n
// is below 1 or more than the limit, or as soon as that is lowered below n;
// [rlock.ErrNotAcquired] when the wait is over, together with ctx's error if that was why
// and with the client's if Redis did not answer; ctx's error alone if it was done before the
// call (nothing was sent); [rlock.ErrClosed], [rlock.ErrArgument], [rlock.ErrName]; Redis's
// own error, WRONGTYPE above all, when it refuses the command. On error the returned context
// is ctx, the permits are nil, and nothing is held: what may have been granted unseen is
// given back in the background.
func (m *Semaphore) Acquire(ctx context.Context, n int, opts ...rlock.LockOption) (context.Context, *Permits, error) {
	if err := m.tooMany(ctx, n); err != nil {
		return ctx, nil, wrap("acquire", m.names.Name(), err)
	}
	section, h, err := m.s.Lock(ctx, &permits{m, n}, opts...)
	return section, newPermits(h, n), err
}

// TryAcquire is Acquire without the waiting: if n permits are not free, or others of this
// session wait for permits, it returns [rlock.ErrNotAcquired], after one round trip at most (two
// if n is more than the limit that this handle knows of).
// Only when the answer to that is lost does it ask again. When Redis cannot be reached it
// returns the client's error.
func (m *Semaphore) TryAcquire(ctx context.Context, n int, opts ...rlock.LockOption) (context.Context, *Permits, error) {
	if err := m.tooMany(ctx, n); err != nil {
		return ctx, nil, wrap("try acquire", m.names.Name(), err)
	}
	section, h, err := m.s.TryLock(ctx, &permits{m, n}, opts...)
	return section, newPermits(h, n), err
}

// Do runs fn while holding n permits, with the critical section's context, and releases
// them when fn returns, panics or calls runtime.Goexit. It returns Acquire's error, or
// fn's joined with the release's: lost permits show as [rlock.ErrLost], also if fn itself
// did not notice.
func (m *Semaphore) Do(ctx context.Context, n int, fn func(context.Context) error, opts ...rlock.LockOption) error {
	if err := m.tooMany(ctx, n); err != nil {
		return wrap("do", m.names.Name(), err)
	}
	return m.s.Do(ctx, &permits{m, n}, fn, opts...)
}

// MaxAtOnce is how many permits one request may be for: each has an entry of its own in
// Redis, and ten thousand of them keep it busy for less than a tenth of a second. A
// [Counter] has no such bound.
const MaxAtOnce = 10_000

// tooMany returns why n permits can never be had, as far as that can be told before the
// request stands in the session's line. There it is told by the answer to the next attempt
// of whoever is in front; and TryAcquire does not get there if somebody is.
func (m *Semaphore) tooMany(ctx context.Context, n int) error {
	switch {
	case m.err != nil:
		return m.err
	case n < 1:
		return fmt.Errorf("%w: n is %d; it must be at least 1", ErrLimit, n)
	case n > MaxAtOnce:
		return fmt.Errorf("%w: n is %d; one request is for at most %d permits", rlock.ErrArgument, n, MaxAtOnce)
	case int64(n) <= m.known.Load():
		return nil
	}
	// The limit may have been raised in the meantime. Whatever else is wrong shows when
	// the permits are asked for.
	if _, limit, err := m.state(ctx, "limit"); err == nil && n > limit {
		return beyond(n, int64(limit))
	}
	return nil
}

// beyond is the error of a request that is larger than the limit.
func beyond(n int, limit int64) error {
	return fmt.Errorf("%w: n is %d, and the limit %d", ErrLimit, n, limit)
}

// Available asks Redis how many permits are free, never less than 0. Expired ones count,
// and are given back on the way. It blocks for one round trip; by the time it returns the
// answer may be out of date.
func (m *Semaphore) Available(ctx context.Context) (int, error) {
	if m.err != nil {
		return 0, wrap("available", m.names.Name(), m.err)
	}
	free, _, err := m.state(ctx, "available")
	return max(0, free), err
}

// state asks Redis; free may be below 0.
func (m *Semaphore) state(ctx context.Context, op string) (free, limit int, err error) {
	cmd := rlock.Command{
		Script: stateScript, Keys: m.names.both,
		Args: []string{itoa(m.limit), m.names.channel, m.names.Publish()},
	}
	err = m.s.Call(ctx, op, &permits{m, 0}, cmd, func(r rueidis.RedisResult) error {
		reply, err := r.AsIntSlice()
		if err != nil {
			return err
		}
		if len(reply) != 2 {
			return fmt.Errorf("%w: %d elements", errShape, len(reply))
		}
		free, limit = int(reply[0]), int(reply[1])
		return nil
	})
	if err == nil {
		m.known.Store(int64(limit))
	}
	return free, limit, err
}

// SetLimit sets the limit for everybody. Permits that are held stay held: a limit below
// their number only keeps others out until enough have been released. Waiters that may go
// on are woken; those that now ask for more than the limit get [ErrLimit]. A limit of 0
// lets nobody in. It blocks for one round trip. Errors: [rlock.ErrArgument] if limit is
// below 0; [rlock.ErrClosed]; ctx's error if it was done before (nothing was sent); else
// the client's, after which the limit may have been set or not.
func (m *Semaphore) SetLimit(ctx context.Context, limit int) error {
	err := m.err
	if err == nil {
		err = atLeast("the limit", limit, 0)
	}
	if err != nil {
		return wrap("set limit", m.names.Name(), err)
	}
	cmd := rlock.Command{
		Script: setLimitScript, Keys: m.names.both,
		Args: []string{itoa(limit), m.names.channel, m.names.Publish()},
	}
	err = m.s.Call(ctx, "set limit", &permits{m, 0}, cmd, func(r rueidis.RedisResult) error { return r.Error() })
	if err == nil {
		m.known.Store(int64(limit))
	}
	return err
}

// errShape is a reply that the scripts never give.
var errShape = errors.New("semaphore: unexpected reply")

// Permits are what one Acquire got: one or more permits of a semaphore, held and released
// together. A value, not bound to the goroutine that got it. Safe for concurrent use.
type Permits struct {
	h *rlock.Hold
	n int
}

func newPermits(h *rlock.Hold, n int) *Permits {
	if h == nil {
		return nil
	}
	return &Permits{h, n}
}

// N returns how many they are.
func (p *Permits) N() int { return p.n }

// Owner returns what their ids in Redis begin with; they are "<owner>:1" to "<owner>:<n>".
func (p *Permits) Owner() string { return p.h.Owner() }

// Remaining returns for how long they can surely be trusted without another word from
// Redis, by this process's monotonic clock; 0 when they have ended.
func (p *Permits) Remaining() time.Duration { return p.h.Remaining() }

// Release gives them back and ends the section's context with the cause
// [rlock.ErrReleased]. It works although the context is done, and blocks for one round
// trip, at most Config.ReleaseTimeout.
//
// Errors: [rlock.ErrNotHeld] for a second call; [rlock.ErrLost] if they had expired or the
// semaphore was deleted, and nothing was changed; [rlock.ErrClosed] after the session was
// closed; else the client's error when no answer came in time: the release then goes on
// in the background until Redis confirms it or the lease is over. After any error they
// are not held any more, and nobody who has taken permits since is touched.
func (p *Permits) Release() error { return p.h.Unlock() }

// Extend gives permits with a fixed lease ([rlock.Lease]) a new end: d from now, at least
// 1 ms, sooner or later than the old one. It blocks for one round trip, until ctx ends or
// the permits do. Errors are those of [rlock.Hold.Extend].
func (p *Permits) Extend(ctx context.Context, d time.Duration) error { return p.h.Extend(ctx, d) }
