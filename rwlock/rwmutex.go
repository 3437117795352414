package rwlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/rlock"
)

// RWMutex is a reentrant lock under one name with a side for readers, who share it, and
// one for writers, who are alone: among all processes that use the same Redis, Java
// processes with Redisson's RReadWriteLock included. It is a handle: made without I/O,
// safe for concurrent use, and as good as any other of the same name and session.
type RWMutex struct {
	s     *rlock.Session
	n     *names
	read  readSide
	write writeSide
	err   error
}

// New returns the read-write lock with that name. It does no I/O and does not fail; a bad
// name (empty: [rlock.ErrName]) or session ([rlock.ErrArgument]) is reported by the first
// operation.
func New(s *rlock.Session, name string) *RWMutex {
	base, err := s.Names(name)
	floor := rlock.DefaultPollFloor
	if err == nil {
		floor = s.Config().PollFloor
	}
	n := newNames(base, floor)
	return &RWMutex{s: s, n: n, read: readSide{n}, write: writeSide{n}, err: err}
}

// RLock waits until the owner that ctx carries (see [rlock.WithOwner]), or a new one,
// holds the read side. An owner that holds either side already comes in at once. Others
// wait while somebody else holds the write side, and also behind a writer that waits for
// the readers to leave, so that readers that arrive without end do not keep it out.
//
// The returned context is the critical section's, as that of [rlock.Mutex.Lock]: it
// carries the owner, and it is cancelled with the cause [rlock.ErrLost] when the lease is
// lost, [rlock.ErrClosed] when the session closes, [rlock.ErrReleased] when the owner's
// last hold of either side is released. Each reader has a lease of its own: one that dies
// ends with it, and takes no other along.
//
// RLock blocks until it holds the lock or ctx ends; [rlock.Wait] bounds only the waiting.
// Errors and what they mean are those of rlock.Mutex.Lock; ErrArgument also for an owner id
// that cannot be told from the lock's own fields: "mode", or one that ends in ":write". On
// error the returned context is ctx, the hold is nil, and nothing new is held.
func (m *RWMutex) RLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	if err := m.check("lock", ctx); err != nil {
		return ctx, nil, err
	}
	return m.s.Lock(ctx, m.read, opts...)
}

// TryRLock is RLock without the waiting: where RLock would have to wait it returns
// [rlock.ErrNotAcquired] after one round trip. So it does behind a waiting writer,
// although only readers hold the lock.
func (m *RWMutex) TryRLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	if err := m.check("try lock", ctx); err != nil {
		return ctx, nil, err
	}
	return m.s.TryLock(ctx, m.read, opts...)
}

// Lock waits until the owner that ctx carries, or a new one, holds the write side, alone.
// Its owner may take either side again, and may unlock the write side while it keeps the
// read side: that is a downgrade, at which waiting readers come in. The other way round
// there is no way: Lock by an owner that holds only the read side is [ErrUpgrade] at once,
// and the read side stays held.
//
// While a writer waits, readers from outside wait too; they get their chance when a writer
// has left. A writer gets in when the readers that were there are gone: for one that died
// that takes until the end of its own lease. Otherwise Lock is as RLock: the returned
// context, when it blocks, its errors.
func (m *RWMutex) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	if err := m.check("lock", ctx); err != nil {
		return ctx, nil, err
	}
	return m.s.Lock(ctx, m.write, opts...)
}

// TryLock is Lock without the waiting: if anybody else holds either side it returns
// [rlock.ErrNotAcquired] after one round trip, and keeps no reader out. [ErrUpgrade] as Lock.
func (m *RWMutex) TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	if err := m.check("try lock", ctx); err != nil {
		return ctx, nil, err
	}
	return m.s.TryLock(ctx, m.write, opts...)
}

// RDo runs fn while holding the read side, with the critical section's context, and
// releases it when fn returns, panics or calls runtime.Goexit. It returns RLock's error,
// or fn's joined with the release's: a lost lease shows as [rlock.ErrLost], also if fn
// itself did not notice.
func (m *RWMutex) RDo(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error {
	if err := m.check("do", ctx); err != nil {
		return err
	}
	return m.s.Do(ctx, m.read, fn, opts...)
}

// Do is RDo with the write side, and with Lock's errors.
func (m *RWMutex) Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error {
	if err := m.check("do", ctx); err != nil {
		return err
	}
	return m.s.Do(ctx, m.write, fn, opts...)
}

// State is a read-write lock as Redis sees it.
type State struct {
	// Mode is "read", "write", or "" when the lock is free. A writer that holds the read
	// side too is "write".
	Mode string
	// Owners has the hold count of each owner, both sides added. Readers whose lease is
	// over are not among them.
	Owners map[string]int
	// TTL is what is left of the longest lease; 0 when free.
	TTL time.Duration
}

// State asks Redis who holds the lock, on which side, how deep, and for how long. It blocks
// for one round trip. By the time it returns the answer may be out of date.
func (m *RWMutex) State(ctx context.Context) (State, error) {
	if err := m.usable("state"); err != nil {
		return State{}, err
	}
	var st State
	err := m.s.Call(ctx, "state", m.read, m.n.state(), func(r rueidis.RedisResult) (err error) {
		st, err = decodeState(r)
		return err
	})
	return st, err
}

// decodeState reads the reply of state.lua.
func decodeState(r rueidis.RedisResult) (State, error) {
	reply, err := r.ToArray()
	if err != nil {
		return State{}, err
	}
	if len(reply) < 2 || len(reply)%2 != 0 {
		return State{}, fmt.Errorf("rwlock: unexpected reply: %d elements", len(reply))
	}
	mode, err1 := reply[0].ToString()
	ttl, err2 := reply[1].AsInt64()
	if err := errors.Join(err1, err2); err != nil {
		return State{}, fmt.Errorf("rwlock: unexpected reply: %w", err)
	}
	st := State{Mode: mode, Owners: make(map[string]int, len(reply)/2-1)}
	if ttl > 0 {
		st.TTL = time.Duration(ttl) * time.Millisecond
	}
	for i := 2; i < len(reply); i += 2 {
		owner, err1 := reply[i].ToString()
		holds, err2 := reply[i+1].AsInt64()
		if err := errors.Join(err1, err2); err != nil {
			return State{}, fmt.Errorf("rwlock: unexpected reply: %w", err)
		}
		st.Owners[owner] = int(holds)
	}
	return st, nil
}

// ForceUnlock ends every owner's holds of both sides, and wakes the waiters. It is for
// operators: holders that are sessions of this library are told at once on their own
// channels, and their critical sections end with [rlock.ErrLost]; a Redisson holder notices
// at its next renewal. It reports whether there was a hold to end. It blocks for one round
// trip to the lock and a few more to tell the holders; run again after a lost reply it may
// report false although its first run found a hold.
func (m *RWMutex) ForceUnlock(ctx context.Context) (bool, error) {
	if err := m.usable("force unlock"); err != nil {
		return false, err
	}
	return m.s.ForceUnlock(ctx, m.read, m.n.forceUnlock)
}

// usable returns why the handle cannot be used, if it cannot.
func (m *RWMutex) usable(op string) error {
	if m.err != nil {
		return fmt.Errorf("%s %q: %w", op, m.n.Name(), m.err)
	}
	return nil
}

// check is usable for what acquires: it also refuses owner ids that would be taken for
// another field of the hash. A nil ctx is the session's to report.
func (m *RWMutex) check(op string, ctx context.Context) error {
	if err := m.usable(op); err != nil || ctx == nil {
		return err
	}
	if id, _ := rlock.NamedOwner(ctx); id == "mode" || strings.HasSuffix(id, ":write") {
		return fmt.Errorf("%s %q: %w: owner %q; in a read-write lock that stands for something else: it must not be \"mode\" or end in \":write\"",
			op, m.n.Name(), rlock.ErrArgument, id)
	}
	return nil
}
