package semaphore

import (
	"context"
	"time"

	"relock/internal/engine"
)

// Permits are what one Acquire got: one or more permits of a semaphore, held and released together,
// by any goroutine. Safe for concurrent use. The methods of nil or zero Permits return
// [rlock.ErrNotHeld] or zero values.
type Permits engine.Hold

// N returns the number of permits.
func (p *Permits) N() int { return (*engine.Hold)(p).N() }

// Owner returns the owner of the permits, for looking at: no two acquisitions of Redis have the
// same one. It is not in Redis; what stands there is [Permits.IDs].
func (p *Permits) Owner() string { return (*engine.Hold)(p).Owner() }

// Remaining returns for how long the permits can be trusted, as [rlock.Hold.Remaining].
func (p *Permits) Remaining() time.Duration { return (*engine.Hold)(p).Remaining() }

// Release gives the permits back as [rlock.Hold.Unlock] releases a lock, and with the same errors,
// or hands them over in memory if the session's next waiter wants exactly as many. It is
// [rlock.ErrLost] also if one of several permits was taken away; the others were given back.
func (p *Permits) Release() error { return (*engine.Hold)(p).Unlock(false) }

// ReleaseAsync is [Permits.Release] without its answer, as [rlock.Hold.UnlockAsync] is Unlock, at the same price: errors,
// [rlock.ErrLost] above all, go to Config.Logger and Config.Trace. It does not block. The session's next Acquire of the
// name goes behind the release; a TryAcquire counts the permits as free.
func (p *Permits) ReleaseAsync() { (*engine.Hold)(p).UnlockAsync() }

// Extend gives permits with a fixed lease ([rlock.Lease]) a new end, as [rlock.Hold.Extend] does.
func (p *Permits) Extend(ctx context.Context, d time.Duration) error {
	return (*engine.Hold)(p).Extend(ctx, d)
}
