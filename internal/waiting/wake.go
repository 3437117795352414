package waiting

import (
	"context"
	"time"

	"relock/internal/clock"
)

// Sleep returns after d, which may be [clock.Never]; or earlier, when the caller is woken, its
// context ends or a message comes. No mutex may be held.
func Sleep[M any](ctx context.Context, w clock.Wake, messages <-chan M, d time.Duration) (message, timedOut bool) {
	if d == clock.Never && messages == nil { // as mostly: a timer would cost more
		select {
		case <-w:
		case <-ctx.Done():
		}
		return false, false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w:
	case <-ctx.Done():
	case <-messages:
		message = true
	case <-timer.C:
		timedOut = true
	}
	return message, timedOut
}
