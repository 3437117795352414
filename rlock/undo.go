package rlock

import (
	"context"
	"time"
)

// An undoing is a release that nobody waits for: of an attempt whose outcome stayed
// unknown, or of a hold whose Unlock got no answer. It is sent until Redis answers,
// or until the lease that it speaks of is over by itself.
//
// On one connection the undo runs behind what it undoes. After a reconnection it
// does too: the server reads what was left in the old connection no later than the
// greeting of the new one. Only a proxy or a healing network can deliver the older
// command later; then the lock ends one lease later, by itself.
type undoing struct {
	cmd   Command
	name  string
	until time.Duration
	done  func(confirmed bool) // called with Session.mu held; may be nil
}

// undo has u done in the background, and reports whether it will be tried. Session.mu
// must be held.
func (s *Session) undo(u undoing) bool {
	if s.ctx.Err() != nil { // Close did not wait so long
		s.unconfirmed++
		return false
	}
	s.undoings = append(s.undoings, u)
	if !s.undoer {
		s.undoer = true
		s.active++
		s.background.Go(s.undoAll)
	}
	return true
}

// undoBatch bounds one pipeline of undoings.
const undoBatch = 256

// undoAll works off the undoings, and ends when none is left. There is at most one
// for a session.
func (s *Session) undoAll() {
	defer s.leave()
	failures := 0
	for {
		s.mu.Lock()
		n := min(len(s.undoings), undoBatch)
		if n == 0 {
			s.undoings = nil
			s.undoer = false
			s.unlock()
			return
		}
		batch := append([]undoing(nil), s.undoings[:n]...)
		s.undoings = s.undoings[n:]
		s.unlock()

		left, atOnce := s.undoOnce(batch)
		if len(left) == 0 {
			failures = 0
			continue
		}
		s.mu.Lock()
		s.undoings = append(s.undoings, left...)
		s.unlock()
		failures++
		if atOnce && failures == 1 {
			continue
		}
		pause(s.ctx, failures) //nolint:errcheck // when it ends early, so do the undoings
	}
}

// undoOnce sends a batch and returns what has to be sent again; atOnce, if it failed with
// somebody else's context. rueidis connects with that of whoever came first, and when he
// gives up, all who wait for the connection fail: those that undo what he did above all.
func (s *Session) undoOnce(batch []undoing) (left []undoing, atOnce bool) {
	cmds := make([]Command, len(batch))
	for i, u := range batch {
		cmds[i] = u.cmd
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ReleaseTimeout)
	defer cancel()
	results := s.runMulti(ctx, cmds)
	now := s.now()
	for i, u := range batch {
		reply, _ := results[i].AsIntSlice()
		if u.cmd.widen(reply) {
			left = append(left, u)
			continue
		}
		err := results[i].Error()
		confirmed := err == nil
		if !confirmed && classify(err) != refused && now < u.until && s.ctx.Err() == nil {
			atOnce = atOnce || (isCtxErr(err) && ctx.Err() == nil)
			left = append(left, u)
			continue
		}
		if !confirmed {
			s.log.Warn("relock: a release was never confirmed; the lock ends with its lease", "name", u.name, "error", err)
			s.mu.Lock()
			s.unconfirmed++
			s.unlock()
		}
		if u.done != nil {
			s.mu.Lock()
			u.done(confirmed)
			s.unlock()
		}
	}
	return left, atOnce
}
