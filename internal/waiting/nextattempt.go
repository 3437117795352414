package waiting

import (
	"math/rand/v2"
	"time"

	"relock/internal/clock"
)

// A NextAttempt is when the waiter in front asks Redis, as long as no claim of the session holds the lock. The
// zero value: at once.
type NextAttempt struct {
	// Soon: at once. The front was woken, or a wake-up was taken by a front that left before it could
	// follow it.
	Soon bool
	At   time.Duration // when it asks without that
}

// Next returns when the front asks, but for the time that is left to others, which ends at yielded. It has
// no reason to wait until At if it neither listens nor polls.
func (k *NextAttempt) Next(waits bool, yielded time.Duration) time.Duration {
	if k.Soon || !waits {
		return yielded
	}
	return max(k.At, yielded)
}

// After has the front ask when the poll floor from now is over, or in so many milliseconds if Redis said
// that it is worth while then (-1: Redis does not know).
func (k *NextAttempt) After(now, floor time.Duration, ms int64) {
	// Up to a tenth less than the floor, so that the waiters of many sessions do not look
	// all at once for ever.
	sleep := floor - time.Duration(rand.Int64N(int64(floor)/10+1))
	if ms >= 0 && ms < sleep.Milliseconds() {
		// PTTL is rounded down by up to a millisecond.
		sleep = time.Duration(ms+1) * time.Millisecond
	}
	k.At = now + max(sleep, clock.Least)
}
