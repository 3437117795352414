package clock

import (
	"context"
	"sync/atomic"
	"time"
)

// Deadline has contexts that end after a time: what begins within an eighth of that time
// shares one, which ends for it up to an eighth earlier. A timer for each call would cost more
// than all else that the client does for it.
type Deadline struct {
	parent context.Context
	each   time.Duration
	last   atomic.Pointer[limit]
}

type limit struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Duration // new calls get another
}

// Set has the contexts end with parent, and each after a time. It must be called before At.
func (s *Deadline) Set(parent context.Context, each time.Duration) { s.parent, s.each = parent, each }

// At returns the context of a call that begins at a time, by a clock of the caller's.
func (s *Deadline) At(now time.Duration) context.Context {
	for {
		old := s.last.Load()
		if old != nil && now < old.until {
			return old.ctx
		}
		l := &limit{until: now + s.each/8}
		l.ctx, l.cancel = context.WithTimeout(s.parent, s.each)
		if s.last.CompareAndSwap(old, l) {
			return l.ctx
		}
		l.cancel()
	}
}

// Stop ends the last context and its timer.
func (s *Deadline) Stop() {
	if l := s.last.Load(); l != nil {
		l.cancel()
	}
}
