package rlock

import (
	"context"
	"time"

	"relock/internal/engine"
)

// Hold is one successful Lock. Each nested Lock gives a Hold of its own; the lock is free
// when all of an owner's Holds are unlocked, in any order. A Hold is not bound to the
// goroutine that got it. Safe for concurrent use. The methods of a nil or zero Hold return
// [ErrNotHeld] or zero values.
type Hold engine.Hold

// Unlock releases this hold. The owner's last Unlock ends the section's context with the
// cause [ErrReleased]. It then releases the lock in Redis, or hands it over in memory to the
// session's next waiter.
//
// Unlock works although the context is done. It blocks for one round trip, at most
// Config.ReleaseTimeout; not at all if the lock is handed over, or if other readers of the
// session keep the read hold that they share.
//
// Errors: [ErrNotHeld] for a second call; [ErrLost] if the lock was lost before (without a
// round trip: as far as the session knows); [ErrClosed] after the session was closed;
// [ErrUnavailable] when no answer came in time, or Redis cannot serve. The release then goes on
// in the background until Redis confirms it or the lease is over. After any error the hold has
// ended, and no later owner was touched. During a failover Unlock may return nil although the
// release was lost.
func (h *Hold) Unlock() error { return (*engine.Hold)(h).Unlock() }

// Extend gives a hold with a fixed lease ([Lease]) a new end: d from now, at least 1 ms (else
// [ErrArgument]), sooner or later than the old one. The lock itself stays for as long as the
// longest of the owner's holds. Extend blocks for one round trip, and with Config.Replicas until
// those have acknowledged the new end. In an outage, and while replicas are missing, it tries again
// until ctx ends or the hold does.
//
// Errors: ErrArgument also for a hold that the watchdog renews; [ErrNotHeld] after Unlock;
// [ErrLost] if the hold has run out, also while Extend waited for an answer, or if the lock is
// lost; [ErrClosed]; ctx's error, with [ErrUnavailable] if it ended an attempt; ErrUnavailable
// alone if Redis refuses this user. After the last two the end may or may not have moved, and
// the hold is trusted until the earlier of both.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	return (*engine.Hold)(h).Extend(ctx, d)
}

// Abandon ends this hold as [Hold.Unlock] does, but leaves the lock standing in Redis until
// its lease is over, also through [Session.Close]: for jobs that run once per interval, with
// [Lease]. The lock is not renewed any more, nor handed over. Abandon sends nothing. Errors:
// those of Unlock.
func (h *Hold) Abandon() error { return (*engine.Hold)(h).Abandon() }

// Owner returns the owner as it stands in the lock's hash, for looking at, not for
// [WithOwner]. Sections that a lock is handed over to in memory have the same owner, one
// after the other; readers that share a read hold, together.
func (h *Hold) Owner() string { return (*engine.Hold)(h).Owner() }

// Token returns the fencing token: greater than that of every earlier section of the name
// (with [FencedFor], since the key has ended last), the same for all nested holds; 0 unless the
// mutex is [Fenced] or FencedFor.
//
// Send it along with every write to the resource that the lock protects, and let the resource
// refuse a token lower than the highest it has seen. That stops a holder that was paused past
// its lease (Martin Kleppmann, "How to do distributed locking", 2016). Tokens are as durable
// as Redis: a failover to a replica that missed one can repeat it.
func (h *Hold) Token() int64 { return (*engine.Hold)(h).Token() }

// Remaining returns for how long the hold can be trusted without another answer from Redis,
// by this process's monotonic clock; 0 when it has ended.
func (h *Hold) Remaining() time.Duration { return (*engine.Hold)(h).Remaining() }
