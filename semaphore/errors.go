package semaphore

import (
	"errors"
	"fmt"

	"relock/rlock"
)

// ErrLimit: the request is for more permits than the semaphore's limit, or for less than
// one. It could not be granted however long it waits. Nothing was taken.
var ErrLimit = errors.New("semaphore: request beyond the limit")

// most is the largest number of permits: the integers up to it are exact in Lua too.
const most = 1 << 53

// atLeast returns an error unless n is between least and most.
func atLeast(what string, n, least int) error {
	if n < least || n > most {
		return fmt.Errorf("%w: %s is %d; it must be at least %d and at most %d", rlock.ErrArgument, what, n, least, most)
	}
	return nil
}
