package rlock

import (
	"context"
	"time"

	"relock/internal/engine"
)

// Hold is one successful Lock. Each nested Lock gives a Hold of its own; the lock is free when all
// of an owner's Holds are unlocked, in any order, by any goroutine. Safe for concurrent use. The
// methods of a nil or zero Hold return [ErrNotHeld] or zero values.
type Hold engine.Hold

// Unlock releases this hold. The owner's last Unlock ends the section's context with [ErrReleased],
// and then releases the lock in Redis or hands it over in memory. It works although the context is
// done. It blocks for one round trip, at most Config.ReleaseTimeout; not at all if the lock is
// handed over, or other readers of the session keep the read hold that they share.
//
// Errors: [ErrNotHeld] for a second call; [ErrLost] if the lock was lost before; [ErrClosed] after
// Close; [ErrUnavailable] if no answer came in time: the release then goes on in the background
// until Redis confirms it or the lease is over. After any error the hold has ended, and no later
// owner was touched. In a failover Unlock may return nil although the release was lost.
func (h *Hold) Unlock() error { return (*engine.Hold)(h).Unlock(false) }

// UnlockAsync is [Hold.Unlock] without its answer: it ends the section at once, sends the release and returns. It blocks
// for nothing but the code of the caller's contexts. The session's next Lock or TryLock of the name goes behind the
// release in the same pipeline, so a goroutine that locks and unlocks again and again waits for one round trip a cycle
// instead of two, with the same commands. If the release has left already, it waits for that first: then little is gained.
//
// The price is that nobody says how it went. What Unlock would have returned goes to Config.Logger, as a warning,
// and to Config.Trace: [ErrLost] above all, which says that another owner may have been inside meanwhile, and that what
// the section did should be undone. The context is no substitute: it ends only when the session notices. Until the
// release is answered the lock may stand, also when UnlockAsync has returned: for a round trip as a rule. So use Unlock
// where the answer decides something, as before a commit that relies on the lock, before the process exits without
// [Session.Close], or before others are told that the lock is free. Resends, Close and Shutdown treat the release as
// that of an Unlock which is under way; a process that dies before it was sent leaves the lock to its lease.
//
// A nil Hold is left alone; a second call is a warning. An inner hold ends the same way, and the owner's
// next nested Lock waits for the answer.
func (h *Hold) UnlockAsync() { (*engine.Hold)(h).UnlockAsync() }

// Extend gives a hold with a fixed lease ([Lease]) a new end: d from now, at least 1 ms, sooner or
// later than the old one. The lock stays as long as the longest of the owner's holds. Extend blocks
// for a round trip, and for Config.Replicas; in an outage until ctx or the hold ends.
//
// Errors: [ErrArgument] also for a hold that the watchdog renews; [ErrNotHeld] after Unlock;
// [ErrLost] if the hold has run out or the lock is lost; [ErrUnavailable], with ctx's error if that
// ended an attempt: the end may or may not have moved, and the hold is trusted until the earlier of
// both.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	return (*engine.Hold)(h).Extend(ctx, d)
}

// Abandon is [Hold.Unlock], but sends nothing: the lock stands until its lease is over, neither
// renewed nor handed over, also through [Session.Close]. It is for jobs that run once per interval,
// with [Lease]. Only a lock that is to stand for longer than that ([AtLeast]) is told so, in the background.
func (h *Hold) Abandon() error { return (*engine.Hold)(h).Abandon() }

// Owner returns the owner in the lock's hash: to look at, not for [WithOwner]. Sections of one
// hand-over share it, and so do readers that share a hold.
func (h *Hold) Owner() string { return (*engine.Hold)(h).Owner() }

// Token returns the fencing token: greater than that of every earlier section of the name (with
// [FencedFor], since its key has ended last), the same for nested holds; 0 without [Fenced]. Send
// it with every write to the resource that the lock protects, and let the resource refuse a token
// lower than the highest it has seen. That stops a holder that was paused past its lease (Martin
// Kleppmann, "How to do distributed locking", 2016).
func (h *Hold) Token() int64 { return (*engine.Hold)(h).Token() }

// Remaining returns for how long the hold can be trusted without another answer from Redis, by this
// process's monotonic clock; 0 when it has ended.
func (h *Hold) Remaining() time.Duration { return (*engine.Hold)(h).Remaining() }
