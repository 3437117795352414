package semaphore

import (
	"context"
	"time"

	"relock/internal/engine"
)

// Permits are what one Acquire got: one or more permits of a semaphore, held and released
// together. They are not bound to the goroutine that got them. Safe for concurrent use.
//
// The methods of nil or zero Permits do nothing: those that return an error return
// [rlock.ErrNotHeld], the others zero values.
type Permits engine.Hold

// N returns the number of permits.
func (p *Permits) N() int { return (*engine.Hold)(p).N() }

// Owner returns the owner of the permits, for looking at: no two acquisitions of Redis have the
// same one. It is not in Redis; what stands there is [Permits.IDs].
func (p *Permits) Owner() string { return (*engine.Hold)(p).Owner() }

// Remaining returns for how long the permits can be trusted without another answer from
// Redis, by this process's monotonic clock; 0 when they have ended.
func (p *Permits) Remaining() time.Duration { return (*engine.Hold)(p).Remaining() }

// Release ends the section's context with the cause [rlock.ErrReleased]. It then gives the
// permits back, or hands them over in memory if the session's next waiter wants exactly as
// many. Release works although the context is done. It blocks for one round trip, at most
// Config.ReleaseTimeout; not at all if the permits are handed over.
//
// Errors: [rlock.ErrNotHeld] for a second call; [rlock.ErrLost] if the permits had expired or
// the semaphore was deleted, and nothing was changed (without a round trip: as far as the
// session knows), or if one of several was taken away, and the others were given back;
// [rlock.ErrClosed] after the session was closed; [rlock.ErrUnavailable] when
// no answer came in time, or Redis cannot serve. The release then goes on in the background
// until Redis confirms it or the lease is over. After any error the permits are not held any
// more, and those of others were not touched.
func (p *Permits) Release() error { return (*engine.Hold)(p).Unlock() }

// Extend gives permits with a fixed lease ([rlock.Lease]) a new end: d from now, at least
// 1 ms, sooner or later than the old one. It blocks as [rlock.Hold.Extend] does, until ctx ends
// or the permits do. Errors are those of [rlock.Hold.Extend].
func (p *Permits) Extend(ctx context.Context, d time.Duration) error {
	return (*engine.Hold)(p).Extend(ctx, d)
}
