package rlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/engine"
	"relock/internal/mutex"
	"relock/internal/script"
)

// Mutex is a handle of a reentrant lock, exclusive among all processes that use the same Redis,
// Redisson's RLock (if [Fenced], RFencedLock) included. Handles of one name and session are alike.
// Safe for concurrent use.
type Mutex engine.Handle

// New returns the reentrant mutex with that name. It does no I/O: the first operation reports a bad
// name, session or option.
func New(s *Session, name string, opts ...MutexOption) *Mutex {
	session := (*engine.Session)(s)
	names, err := session.Names(name)
	o, bad := mutex.CollectOptions(opts)
	if err == nil {
		err = bad
	}
	if err == nil {
		err = o.CheckKeep(session)
	}
	return (*Mutex)(mutex.NewHandle(session, mutex.New(names, o.Fencing), o.Keep, err))
}

// Name returns the name that New was given, without Config.Prefix.
func (m *Mutex) Name() string {
	p, err := mutex.PrimitiveOf((*engine.Handle)(m))
	if err != nil {
		return ""
	}
	return p.Names().Name()
}

// Session returns the session that New was given; nil for a zero value.
func (m *Mutex) Session() *Session {
	if m == nil {
		return nil
	}
	return (*Session)((*engine.Handle)(m).Session())
}

// Lock waits until the mutex is held. On the context of a section of this mutex it re-enters; else
// its owner is [WithOwner]'s or a new private one.
//
// The returned context is the section's: derived from ctx, with the owner, and cancelled with a
// cause ([context.Cause]): [ErrLost] when the lease is lost, [ErrClosed] when the session closes,
// [ErrReleased] when the owner's last hold of the lock is unlocked. The lease is renewed until the
// context given to the outermost Lock ends. Without an Unlock the lock then ends with the lease.
//
// Lock blocks until it holds the lock or ctx ends, also while Redis cannot be reached or cannot
// serve; [Wait] bounds only the waiting. Errors: [ErrNotAcquired] when the wait is over;
// [ErrDeadlock]; ErrLost if a nested Lock finds the lock gone; [ErrUnavailable] at once if Redis
// refuses this user; Redis's own if the key is no lock. On error the context is ctx, the hold nil,
// and nothing is held: what was granted unseen is released behind it.
func (m *Mutex) Lock(ctx context.Context, opts ...LockOption) (context.Context, *Hold, error) {
	section, h, err := (*engine.Handle)(m).Lock(ctx, 1, true, opts)
	return section, (*Hold)(h), err
}

// TryLock is Lock without the waiting: [ErrNotAcquired] after at most one round trip if another
// owner holds the mutex, [ErrUnavailable] after 1 s (or ReleaseTimeout if shorter, plus
// ReplicaTimeout) without an answer.
func (m *Mutex) TryLock(ctx context.Context, opts ...LockOption) (context.Context, *Hold, error) {
	section, h, err := (*engine.Handle)(m).Lock(ctx, 1, false, opts)
	return section, (*Hold)(h), err
}

// Do runs fn with the section's context while holding the mutex, and releases it when fn returns,
// panics or calls runtime.Goexit. It returns Lock's error, or fn's joined with Unlock's: [ErrLost]
// too if fn did not notice.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, opts ...LockOption) error {
	handle := (*engine.Handle)(m)
	if _, err := handle.Primitive(); err != nil {
		return err
	}
	return handle.Do(ctx, 1, fn, opts)
}

// State is a lock as Redis sees it.
type State struct {
	Owners map[string]int // owner -> hold count; one entry for an exclusive lock that is held
	TTL    time.Duration  // what is left of the lease; 0 when free, or without one
}

// State asks Redis, in a round trip, who holds the mutex, how deep, how long.
func (m *Mutex) State(ctx context.Context) (State, error) {
	handle := (*engine.Handle)(m)
	p, err := mutex.PrimitiveFor(handle, "state")
	if err != nil {
		return State{}, err
	}
	var st State
	err = handle.Calls().Call(ctx, "state", p.State(), func(r rueidis.RedisResult) (err error) {
		st, err = decodeState(r)
		return err
	})
	return st, err
}

// decodeState reads the reply of state.lua: the TTL, then each owner and its count.
func decodeState(r rueidis.RedisResult) (State, error) {
	reply, err := r.ToArray()
	if err != nil {
		return State{}, err
	}
	if len(reply)%2 != 1 {
		return State{}, fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
	}
	st := State{Owners: make(map[string]int, len(reply)/2)}
	if ttl, err := reply[0].AsInt64(); err == nil && ttl > 0 {
		st.TTL = time.Duration(ttl) * time.Millisecond
	}
	for i := 1; i < len(reply); i += 2 {
		owner, err1 := reply[i].ToString()
		count, err2 := reply[i+1].ToString()
		n, err3 := strconv.Atoi(count)
		if err := errors.Join(err1, err2, err3); err != nil {
			return State{}, fmt.Errorf("%w: the hash is not a lock: %w", script.ErrShape, err)
		}
		st.Owners[owner] = n
	}
	return st, nil
}

// Waiters returns how many callers of all sessions wait for the mutex, as of each session's last look,
// which is no older than its Config.PollFloor. Callers of sessions that cannot be told anything, and
// Redisson's, are not among them. It blocks for one round trip, and one more for each 300 sessions or so that wait.
func (m *Mutex) Waiters(ctx context.Context) (int, error) {
	handle := (*engine.Handle)(m)
	p, err := mutex.PrimitiveFor(handle, "waiters")
	if err != nil {
		return 0, err
	}
	return handle.Calls().Waiters(ctx, p.Waiters)
}

// ForceUnlock, for operators, ends any owner's hold, whatever its count, and wakes a waiter. A
// holder of this library is told at once, and its section ends with [ErrLost]; a Redisson holder
// notices when it unlocks. A later holder is left alone, also by a command that arrives late or runs
// again after a lost reply; one with the same owner id only if the command has run before, and not while
// the slot of a Cluster moves. ForceUnlock blocks for four round trips, one if the lock is free. It
// reports whether it ended a hold: perhaps false after a lost reply while the slot moves. After
// [ErrUnavailable] the hold may stand.
func (m *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	handle := (*engine.Handle)(m)
	p, err := mutex.PrimitiveFor(handle, "force unlock")
	if err != nil {
		return false, err
	}
	return handle.ForceUnlock(ctx, p.ForceUnlock)
}
