package holds

import (
	"context"
	"time"
)

// A Hold is one successful Lock.
type Hold struct {
	Side   uint8
	Done   bool // unlocked
	RanOut bool // its fixed lease is over
	*Fixed      // nil: the watchdog renews it
}

// Fixed is what a hold with a fixed lease has.
type Fixed struct {
	Began time.Duration // when its acquisition was sent, or when it was handed over
	Ends  time.Duration // its end
	Until time.Duration // until when it may be trusted, as that of a section
	// Cancel ends its own context; nil if it has none. It must not be set once the hold has run out, or its section
	// has ended: from then on it is read without the mutex.
	Cancel context.CancelCauseFunc
}

// Fix sets the end of a fixed lease: d after a time, of which so much can be trusted.
func (h *Hold) Fix(from, d, trusted time.Duration) {
	if h.Fixed == nil {
		h.Fixed = &Fixed{Began: from}
	}
	h.Ends, h.Until = from+d, from+trusted
}

// HasContext reports whether the hold has a context of its own.
func (h *Hold) HasContext() bool { return h.Fixed != nil && h.Cancel != nil }

// EndContext ends the hold's own context, if it has one. It runs code of the caller's contexts: no mutex
// may be held.
func (h *Hold) EndContext(cause error) {
	if h.HasContext() {
		h.Cancel(cause)
	}
}
