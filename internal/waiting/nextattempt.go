package waiting

import (
	"math/rand/v2"
	"time"

	"relock/internal/clock"
)

// NextAttempt is when the waiter in front asks Redis, as long as no claim of the session holds the lock. The
// zero value: at once.
type NextAttempt struct {
	// Soon: at once. The front was woken, or an earlier front was woken and left before it could ask.
	Soon bool
	At   time.Duration // when it asks without that
}

// Next returns when the front asks: not before yielded, until when the lock is left to other sessions. waits says
// that the front listens or polls; otherwise it has no reason to wait until At.
func (k *NextAttempt) Next(waits bool, yielded time.Duration) time.Duration {
	if k.Soon || !waits {
		return yielded
	}
	return max(k.At, yielded)
}

// After schedules the next attempt: after the poll floor, or in ms milliseconds if Redis said that the lock may be
// free then and that is sooner (-1: Redis does not know).
func (k *NextAttempt) After(now, floor time.Duration, ms int64) {
	// Up to a tenth less than the floor, so that the waiters of many sessions do not go on asking
	// at the same moment.
	sleep := floor - time.Duration(rand.Int64N(int64(floor)/10+1))
	if ms >= 0 && ms < sleep.Milliseconds() {
		// PTTL is rounded down by up to a millisecond.
		sleep = time.Duration(ms+1) * time.Millisecond
	}
	k.At = now + max(sleep, clock.Least)
}
