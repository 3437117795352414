package rlock

import "relock/internal/engine"

// The errors of this package and of the variants built on it. Match them with [errors.Is]:
// they are wrapped with the operation and the lock's name.
var (
	// ErrNotAcquired: another owner holds the lock and the wait is over. If ctx ended it,
	// the error matches ctx's error too. Nothing is held, in Redis or in a queue.
	ErrNotAcquired = engine.ErrNotAcquired
	// ErrUnavailable: Redis did not answer the last attempt, or cannot serve now: it loads, is a
	// replica, has no memory or replicas left, refuses this user (LOADING, READONLY,
	// CLUSTERDOWN, OOM, MISCONF, NOREPLICAS, NOPERM and their like). The error matches the
	// client's error too, and [ErrNotAcquired] if it ended a wait. A service answers 503 to it,
	// and 409 to ErrNotAcquired alone.
	ErrUnavailable = engine.ErrUnavailable
	// ErrDeadlock: the Lock has waited inside of a section, and would have done so for ever: the
	// holder of its lock waits for a lock that this caller holds, perhaps by way of others. The
	// text names the cycle. Exactly one Lock of the cycle ends with it, the youngest; unlock what
	// the section holds, so that the others go on. It matches [ErrNotAcquired] too.
	ErrDeadlock = engine.ErrDeadlock
	// ErrNotHeld: the hold was unlocked before, or is nil. Nothing was changed.
	ErrNotHeld = engine.ErrNotHeld
	// ErrLost: the hold ended without being unlocked. Its lease ran out, or the key was
	// deleted, evicted, force-unlocked or lost in a failover. Others may hold the lock.
	ErrLost = engine.ErrLost
	// ErrReleased is the cause with which a section's context ends at its last Unlock.
	ErrReleased = engine.ErrReleased
	// ErrClosed: the session is closed. What it held has been released.
	ErrClosed = engine.ErrClosed
	// ErrName: the lock's name is empty. A name has at least one byte.
	ErrName = engine.ErrName
	// ErrConfig: a field of Config, or the client, is invalid; the text says what is valid.
	ErrConfig = engine.ErrConfig
	// ErrArgument: an argument is invalid; the text says what is valid. Nothing was sent.
	ErrArgument = engine.ErrArgument
)
