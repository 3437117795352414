package rlock

import "relock/internal/api"

// A TakenError says who has the lock: the error of a TryLock, or of a Lock with [Wait] or [Retry], that was refused has
// one in its chain, and matches [ErrNotAcquired]:
//
//	var taken *rlock.TakenError
//	if errors.As(err, &taken) {
//		log.Printf("%s is held by %s for %v yet", taken.Name, taken.Owner, taken.TTL)
//	}
//
// It costs no round trip of its own. Name is what New was given, without Config.Prefix. Owner had the lock when it was
// refused last, as it stands in the lock's hash, one of them if there are several; it may have gone since. The command
// "relock show" says which process that is. Owner is "" where the refusal did not say: for permits, where others that
// wait were in front, or if Redis did not answer. TTL is what was left of that owner's lease, 0 if Owner is "".
type TakenError = api.TakenError

// The errors of this package and of those built on it, wrapped with the operation and the lock's
// name: match them with [errors.Is]. Any operation may return [ErrArgument], [ErrName],
// [ErrClosed], [ErrUnavailable], Redis's own error (WRONGTYPE), or ctx's alone if ctx was done
// before: then nothing was sent.
var (
	// ErrNotAcquired: another owner holds the lock and the wait is over. If ctx ended it, the error
	// matches ctx's error too. Nothing is held, in Redis or in a queue.
	ErrNotAcquired = api.ErrNotAcquired
	// ErrUnavailable: Redis did not answer the last attempt, or cannot serve (LOADING, READONLY,
	// CLUSTERDOWN, OOM, MISCONF, NOREPLICAS, NOPERM and their like). It matches the client's error
	// too, and ErrNotAcquired if it ended a wait. HTTP: 503, and 409 for ErrNotAcquired alone.
	ErrUnavailable = api.ErrUnavailable
	// ErrDeadlock: the Lock waited inside of a section for an owner that waits, perhaps by way of
	// others, for a lock of that section. The youngest Lock of the cycle, which the text names, ends
	// with it; unlock what its section holds, so that the others go on. Matches ErrNotAcquired too.
	ErrDeadlock = api.ErrDeadlock
	// ErrLost: the hold ended without being unlocked. Its lease ran out, or the key was deleted,
	// evicted, force-unlocked or lost in a failover. Others may hold the lock.
	ErrLost     = api.ErrLost
	ErrNotHeld  = api.ErrNotHeld  // the hold was unlocked before, or is nil; nothing was changed
	ErrReleased = api.ErrReleased // the cause with which a section's context ends at its last Unlock
	ErrClosed   = api.ErrClosed   // the session is closed, or shuts down; Close releases what it holds

	ErrName     = api.ErrName     // the lock's name is empty; it has at least one byte
	ErrArgument = api.ErrArgument // the text says which argument, and what is valid; nothing was sent
	ErrConfig   = api.ErrConfig   // Config, the client or the server is unfit; the text says what to do
)
