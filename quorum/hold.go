package quorum

import (
	"fmt"
	"sync/atomic"
	"time"

	"relock/rlock"
)

// Hold is one successful Lock of a [Mutex]. It is not bound to the goroutine that got it. Safe
// for concurrent use. The methods of a nil or zero Hold return [rlock.ErrNotHeld] or 0.
type Hold struct {
	section *section
	done    atomic.Bool
}

// Unlock ends the section's context with the cause [rlock.ErrReleased] and releases the votes,
// all at the same time. It works although the context is done.
//
// Unlock blocks for one round trip. For Redises that do not answer it waits no longer than Lock
// does if the others leave a majority to the next caller; else for at most
// Config.ReleaseTimeout. What is not confirmed is released in the background.
//
// Errors: [rlock.ErrNotHeld] for a second call; [rlock.ErrLost] if less than a majority of the
// votes was left; [rlock.ErrClosed] if so many sessions were closed before; else
// [rlock.ErrUnavailable], with the clients' errors, if so many votes were not confirmed that the next
// caller may have to wait for their leases. After any error the hold has ended.
func (h *Hold) Unlock() error {
	if h == nil || h.section == nil || h.done.Swap(true) {
		return fmt.Errorf("quorum: unlock: %w", rlock.ErrNotHeld)
	}
	if err := h.section.release(); err != nil {
		return fmt.Errorf("quorum: unlock %q: %w", h.section.m.nodes[0].Names().Name(), err)
	}
	return nil
}

// Remaining returns for how long a majority of the votes can be trusted without another answer
// from the Redises, by this process's monotonic clock; 0 when the hold has ended.
func (h *Hold) Remaining() time.Duration {
	if h == nil || h.section == nil {
		return 0
	}
	return h.section.remaining()
}

// Votes returns how many of the Redises have granted the lock, and can be trusted now; 0 when the
// hold has ended. A number that stays below that of all Redises says that one of them is down.
func (h *Hold) Votes() (n int) {
	if h == nil || h.section == nil {
		return 0
	}
	h.section.mu.Lock()
	defer h.section.mu.Unlock()
	if h.section.closed {
		return 0
	}
	return h.section.trusted
}
