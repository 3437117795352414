package semaphore

import (
	"fmt"
	"time"

	"relock/internal/api"
	"relock/rlock"
)

// An Option is for [New] and [NewCounter].
type Option func(*options)

type options struct {
	end    time.Duration
	hasEnd bool
}

// Expire gives a semaphore or a counter an end: Redis deletes it when it was not used for d (at
// least 1 s): for names that are used once. Without it the number of free permits, and a counter,
// stay for ever, as Redisson's do.
//
// Uses are acquisitions, releases, renewals, extensions and SetLimit; of a counter what changes it.
// Permits that are held keep a semaphore alive for as long as their lease lasts. When a semaphore
// has ended the next request makes it anew, with the limit of its handle: one that SetLimit has set
// is forgotten. A counter that has ended counts as 0.
//
// Give Expire to every handle of the name, in all processes: a handle without it does not renew the
// end. Do not use it where Java waits for the semaphore: a Redisson waiter does not make one.
func Expire(d time.Duration) Option {
	return func(o *options) { o.end, o.hasEnd = d, true }
}

// collect returns what the options say.
func collect(opts []Option) (o options, err error) {
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: a nil Option", rlock.ErrArgument)
		}
		opt(&o)
	}
	if o.hasEnd && (o.end < time.Second || o.end > api.Longest) {
		return o, fmt.Errorf("%w: Expire(%v); it must be at least 1s and at most %v", rlock.ErrArgument, o.end, api.Longest)
	}
	return o, nil
}
