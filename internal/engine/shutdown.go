package engine

import (
	"context"
	"errors"
	"fmt"

	"relock/internal/api"
)

// Shutdown closes the session once its open sections have ended; package rlock documents it.
func (s *Session) Shutdown(ctx context.Context) error {
	err := s.usable()
	if err == nil && ctx == nil {
		err = api.ErrNilContext
	}
	if err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	ends := newEndings()
	defer ends.rethrow()
	s.drain(ends)
	early := s.life.Drained(ctx)
	if early != nil {
		early = fmt.Errorf("shutdown: %w; the sections that were open have been ended", early)
	}
	return errors.Join(early, s.Close())
}

// drain turns away the callers that are in no section, from now on and those that wait.
func (s *Session) drain(ends *endings) {
	s.life.Drain()
	for _, l := range s.locks.All() {
		l.mu.Lock()
		l.giveBack()
		for a := range l.queue.All() {
			if a.outside {
				a.waitErr = ErrClosed // so that no claim is handed over to it either
			}
			a.wake.Up()
			ends.interrupt(a) // a caller in a section just asks again
		}
		l.unlock()
	}
}

// TurnsAway reports whether the session ends for a caller that waits: Close has begun, or Shutdown
// has and the caller is in no section. It runs code of the caller's context: no mutex may be held.
func (s *Session) TurnsAway(ctx context.Context) bool {
	return s.life.Closing.Err() != nil || s.life.Draining.Load() && !s.inSection(ctx)
}

// inSection reports whether ctx lies in an open section of the session. It runs code of the
// caller's context: no mutex may be held.
func (s *Session) inSection(ctx context.Context) bool {
	for x := range sectionsAround(ctx, sectionKey{}) {
		if x.claim.lock.s == s && !x.ctx.HasEnded() {
			return true
		}
	}
	open, _ := ctx.Value(severalKey{}).(func(*Session) bool)
	return open != nil && open(s)
}

// severalKey is where a context keeps whether it lies in open sections of several sessions.
type severalKey struct{}

// InSection returns a context that lies in a section of several sessions, as that of a quorum is. Nothing
// is re-entered on it. For Shutdown it is a section of each session that open reports.
func InSection(ctx context.Context, open func(*Session) bool) context.Context {
	around, _ := ctx.Value(severalKey{}).(func(*Session) bool)
	return context.WithValue(ctx, severalKey{}, func(s *Session) bool {
		return open(s) || around != nil && around(s)
	})
}
