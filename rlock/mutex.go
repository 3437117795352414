package rlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/acquire_by_id.lua
var acquireByIDLua string

//go:embed lua/release_by_id.lua
var releaseByIDLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/extend.lua
var extendLua string

//go:embed lua/force_unlock.lua
var forceUnlockLua string

//go:embed lua/transfer.lua
var transferLua string

//go:embed lua/state.lua
var stateLua string

var (
	acquireScript     = NewScript(acquireLua)
	releaseScript     = NewScript(releaseLua)
	acquireByIDScript = NewScript(acquireByIDLua)
	releaseByIDScript = NewScript(releaseByIDLua)
	renewScript       = NewScript(renewLua)
	extendScript      = NewScript(extendLua)
	forceUnlockScript = NewScript(forceUnlockLua)
	transferScript    = NewScript(transferLua)
	stateScript       = NewScript(stateLua)
)

// Mutex is a reentrant lock under one name, exclusive among all processes that use
// the same Redis, Java processes with Redisson's RLock (or, if [Fenced], RFencedLock)
// included. It is a handle: made without I/O, safe for concurrent use, and as good as
// any other of the same name and session.
type Mutex struct {
	s   *Session
	p   ExclusivePrimitive
	err error
}

// New returns the reentrant mutex with that name. It does no I/O and does not fail; a
// bad name (empty: [ErrName]) or session is reported by the first operation.
func New(s *Session, name string, opts ...MutexOption) *Mutex {
	p, err := NewMutexPrimitive(s, name, opts...)
	return NewMutex(s, p, err)
}

// NewMutex returns a Mutex on a primitive of another package, which holds the lock in the
// same hash. err, if any, is what every operation returns.
func NewMutex(s *Session, p ExclusivePrimitive, err error) *Mutex {
	return &Mutex{s: s, p: p, err: err}
}

// ExclusivePrimitive is a Primitive with the further operations of a [Mutex].
type ExclusivePrimitive interface {
	Primitive
	State() Command                            // of state.lua's shape
	ForceUnlock(sessionChannel string) Command // of force_unlock.lua's shape
}

// Lock waits until the mutex is held: by the owner that ctx carries (see
// [WithOwner]), or by a new one. An owner that holds it already re-enters at once.
//
// The returned context is the critical section's. It carries the owner, so that a
// nested Lock on it, here or through any function that it is passed to, re-enters. It
// is derived from ctx, and it is cancelled with a cause ([context.Cause]): [ErrLost]
// when the lease is lost, [ErrClosed] when the session closes, [ErrReleased] when the
// owner's last hold of this lock is released. The watchdog renews the lease for as
// long as the context given to the outermost Lock lives: when that ends and nobody
// unlocks, the lock frees itself one lease later.
//
// Lock blocks until it holds the lock or ctx ends; use [Wait] to bound only the
// waiting. While Redis cannot be reached it keeps trying. Errors: [ErrNotAcquired]
// when the wait is over, together with ctx's error if that was why and with the
// client's if Redis did not answer; ctx's error alone if it was done before the call
// (nothing was sent); [ErrClosed], [ErrArgument], [ErrName]; [ErrLost] if a nested
// Lock finds that the outer hold is gone; Redis's own error, WRONGTYPE above all,
// when it refuses the command. On error the returned context is ctx, the hold is nil,
// and nothing is held: what may have been granted unseen is taken back in the
// background.
func (m *Mutex) Lock(ctx context.Context, opts ...LockOption) (context.Context, *Hold, error) {
	if m.err != nil {
		return ctx, nil, opError("lock", m.p, m.err)
	}
	return m.s.Lock(ctx, m.p, opts...)
}

// TryLock is Lock without the waiting: if somebody else holds the mutex it returns
// [ErrNotAcquired] after one round trip. Only when the answer to that is lost does it
// ask again, since nothing else tells whether the lock is held. When Redis cannot be
// reached it returns the client's error.
func (m *Mutex) TryLock(ctx context.Context, opts ...LockOption) (context.Context, *Hold, error) {
	if m.err != nil {
		return ctx, nil, opError("try lock", m.p, m.err)
	}
	return m.s.TryLock(ctx, m.p, opts...)
}

// Do runs fn while holding the mutex, with the critical section's context, and
// releases it when fn returns, panics or calls runtime.Goexit. It returns Lock's
// error, or fn's joined with the release's: a lost lease shows as [ErrLost], also if
// fn itself did not notice, unless the lock was handed on in memory before anybody did.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, opts ...LockOption) error {
	if m.err != nil {
		return opError("do", m.p, m.err)
	}
	return m.s.Do(ctx, m.p, fn, opts...)
}

// State is a lock as Redis sees it.
type State struct {
	// Owners has the hold count of each owner: one entry for an exclusive lock that
	// is held, none for a free one.
	Owners map[string]int
	// TTL is what is left of the lease; 0 when free.
	TTL time.Duration
}

// State asks Redis who holds the mutex, how deep, and for how long. It blocks for one
// round trip. By the time it returns the answer may be out of date.
func (m *Mutex) State(ctx context.Context) (State, error) {
	if err := m.usable(ctx); err != nil {
		return State{}, opError("state", m.p, err)
	}
	var st State
	err := m.s.Call(ctx, "state", m.p, m.p.State(), func(r rueidis.RedisResult) error {
		reply, err := r.ToArray()
		if err != nil {
			return err
		}
		st = State{Owners: make(map[string]int, len(reply)/2)}
		if ttl, err := reply[0].AsInt64(); err == nil && ttl > 0 {
			st.TTL = time.Duration(ttl) * time.Millisecond
		}
		for i := 1; i+1 < len(reply); i += 2 {
			owner, err1 := reply[i].ToString()
			count, err2 := reply[i+1].ToString()
			n, err3 := strconv.Atoi(count)
			if err := errors.Join(err1, err2, err3); err != nil {
				return fmt.Errorf("%w: the hash is not a lock: %w", errShape, err)
			}
			st.Owners[owner] = n
		}
		return nil
	})
	return st, err
}

// ForceUnlock ends any owner's hold, whatever its count, and wakes a waiter. It is
// for operators: the holder, if it is a session of this library, is told at once on
// its own channel, and its critical section's context ends with [ErrLost]; a
// Redisson holder notices at its next renewal. It reports whether there was a hold to
// end. It blocks for one round trip; run again after a lost reply it may report false
// although its first run found a hold.
func (m *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	if err := m.usable(ctx); err != nil {
		return false, opError("force unlock", m.p, err)
	}
	return m.s.ForceUnlock(ctx, m.p, m.p.ForceUnlock)
}

func (m *Mutex) usable(ctx context.Context) error {
	if m.err == nil && ctx == nil {
		return fmt.Errorf("%w: ctx is nil; use context.Background()", ErrArgument)
	}
	return m.err
}

// Locker adapts the mutex to [sync.Locker], for code that knows only that. Goroutines
// may share it as they share a sync.Mutex: each Lock is an owner of its own, whatever
// owner ctx carries, and waits for as long as ctx lives. Lock and Unlock panic with
// the error where Mutex would return one, also with [ErrLost]; where that is not
// wanted use Do.
func (m *Mutex) Locker(ctx context.Context) sync.Locker { return &locker{m: m, ctx: ctx} }

type locker struct {
	m   *Mutex
	ctx context.Context

	mu sync.Mutex
	// holds has one entry, unless a hold was lost and another goroutine got in
	// before the loser unlocked. Oldest first: the loser must get its own error,
	// not its successor's hold.
	holds []*Hold
}

func (l *locker) Lock() {
	ctx := l.ctx
	if ctx != nil {
		ctx = withoutOwner(ctx)
	}
	_, h, err := l.m.Lock(ctx)
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.holds, h)
}

func (l *locker) Unlock() {
	l.mu.Lock()
	if len(l.holds) == 0 {
		l.mu.Unlock()
		panic(opError("unlock", l.m.p, ErrNotHeld))
	}
	h := l.holds[0]
	l.holds = l.holds[1:]
	l.mu.Unlock()
	if err := h.Unlock(); err != nil {
		panic(err)
	}
}
