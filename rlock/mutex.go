package rlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/engine"
	"relock/internal/facade"
	"relock/internal/mutex"
	"relock/internal/script"
)

// Mutex is a reentrant lock under one name. It is exclusive among all processes that use the
// same Redis, Java processes with Redisson's RLock (or, if [Fenced], RFencedLock) included. A
// Mutex is a handle: made without I/O, and as good as any other of its name and session. Safe
// for concurrent use.
type Mutex facade.Mutex

// New returns the reentrant mutex with that name. It does no I/O. The first operation reports
// an empty name ([ErrName]) or a nil session ([ErrArgument]).
func New(s *Session, name string, opts ...MutexOption) *Mutex {
	names, err := (*engine.Session)(s).Names(name)
	o, bad := facade.Collect(opts)
	if err == nil {
		err = bad
	}
	return (*Mutex)(facade.NewMutex(mutex.New(names, o.Fencing), err))
}

// Name returns the name that New was given, without the session's prefix; "" for a zero value.
func (m *Mutex) Name() string {
	_, p, err := (*facade.Mutex)(m).Parts()
	if err != nil {
		return ""
	}
	return p.Names().Name()
}

// Session returns the session that New was given; nil for a zero value.
func (m *Mutex) Session() *Session {
	handle, _, err := (*facade.Mutex)(m).Parts()
	if err != nil {
		return nil
	}
	return (*Session)(handle.Session())
}

// Lock waits until the mutex is held. On the context of an open section of this mutex it
// re-enters at once; else it acts for the owner that [WithOwner] has named, or for a new
// private one.
//
// The returned context is the section's. It is derived from ctx, carries the owner, and is
// cancelled with a cause ([context.Cause]): [ErrLost] when the lease is lost, [ErrClosed]
// when the session closes, [ErrReleased] when the owner's last hold of this lock is released.
// The watchdog renews the lease for as long as the context given to the outermost Lock lives.
// When that ends and no Unlock follows, the lock frees itself one lease later.
//
// Lock blocks until it holds the lock or ctx ends; [Wait] bounds only the waiting. While Redis
// cannot be reached, or cannot serve, it keeps trying; the Logger hears when that begins and
// when it ends. Errors: [ErrNotAcquired] when the wait is over, which also matches ctx's error
// if that was why, and [ErrUnavailable] if Redis did not answer; ctx's error alone if it was
// done before the call (nothing was sent); [ErrDeadlock] if the holder waits, directly or by way
// of others, for a lock whose section ctx lies in; ErrClosed, [ErrArgument], [ErrName]; ErrLost
// if a nested Lock finds that the lock is gone; Redis's own error, WRONGTYPE above all, when it
// refuses the command. On error the returned context is ctx, the hold is nil, and nothing is
// held: what may have been granted unseen is released in the background.
func (m *Mutex) Lock(ctx context.Context, opts ...LockOption) (context.Context, *Hold, error) {
	section, h, err := (*facade.Mutex)(m).Lock(ctx, true, opts)
	return section, (*Hold)(h), err
}

// TryLock is Lock without the waiting: if another owner holds the mutex it returns
// [ErrNotAcquired] after at most one round trip. It asks again only if the answer was lost.
// Without an answer it returns [ErrUnavailable], after at most 1 s or Config.ReleaseTimeout if
// that is shorter.
func (m *Mutex) TryLock(ctx context.Context, opts ...LockOption) (context.Context, *Hold, error) {
	section, h, err := (*facade.Mutex)(m).Lock(ctx, false, opts)
	return section, (*Hold)(h), err
}

// Do runs fn while holding the mutex, with the section's context, and releases it when fn
// returns, panics or calls runtime.Goexit. It returns Lock's error, or fn's joined with
// Unlock's. A lost lock shows as [ErrLost] although fn did not notice, with the limit of an
// [Hold.Unlock] that hands over.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, opts ...LockOption) error {
	handle, p, err := (*facade.Mutex)(m).Parts()
	if err != nil {
		return err
	}
	return handle.Do(ctx, p, 1, fn, opts)
}

// State is a lock as Redis sees it.
type State struct {
	// Owners has the hold count of each owner: one entry for an exclusive lock that is held,
	// none for a free one.
	Owners map[string]int
	// TTL is what is left of the lease; 0 when free.
	TTL time.Duration
}

// State asks Redis who holds the mutex, how deep, how long: in one round trip. In an outage it
// tries again for at most Config.ReleaseTimeout, and returns [ErrUnavailable].
func (m *Mutex) State(ctx context.Context) (State, error) {
	handle, p, err := (*facade.Mutex)(m).Parts()
	switch {
	case err != nil:
		return State{}, err
	case handle.Err() != nil:
		return State{}, facade.Wrap("state", p.Names(), handle.Err())
	}
	var st State
	err = handle.Call(ctx, "state", p.State(), func(r rueidis.RedisResult) (err error) {
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

// ForceUnlock ends any owner's hold, whatever its count, and wakes a waiter. It is for
// operators. A holder of this library is told at once and its section ends with [ErrLost]; a
// Redisson holder notices when it unlocks.
//
// ForceUnlock asks who holds the mutex, and then ends that hold: a holder that comes after it
// is left alone, also by a command that the network delivers late, unless it has the same
// name. It reports whether it ended a hold. It blocks for three round trips, and may report
// false after a lost reply. In an outage each round trip takes at most Config.ReleaseTimeout, and
// ForceUnlock returns [ErrUnavailable] if the hold may stand.
func (m *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	handle, p, err := (*facade.Mutex)(m).Parts()
	switch {
	case err != nil:
		return false, err
	case handle.Err() != nil:
		return false, facade.Wrap("force unlock", p.Names(), handle.Err())
	}
	return handle.ForceUnlock(ctx, p.ForceUnlock)
}
