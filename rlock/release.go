package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/internal/idgen"
)

func (h *Hold) unlock() error {
	t, s := h.t, h.t.s
	s.mu.Lock()
	if h.done {
		s.unlock()
		return ErrNotHeld
	}
	h.done = true
	if t.state == ended || s.closed {
		err := s.endedErr(t)
		s.abandon(t, h)
		s.unlock()
		return err
	}
	s.active++
	defer s.leave()
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ReleaseTimeout)
	defer cancel()
	if err := t.waitTurn(ctx); err != nil {
		s.mu.Lock()
		h.drop()
		s.reschedule(t)
		s.unlock()
		return fmt.Errorf("an earlier operation of this owner is still under way: %w", err)
	}
	if t.state == ended {
		err := s.endedErr(t)
		s.abandon(t, h)
		s.unlock()
		return err
	}
	ranOut := h.ranOut
	h.drop()
	var err error
	if t.live() == 0 {
		err = s.releaseLast(ctx, t)
	} else {
		err = s.releaseOne(ctx, t, h)
	}
	if ranOut && err == nil {
		err = ErrLost
	}
	return err
}

// drop takes the hold out of the tenure's account. Session.mu must be held.
func (h *Hold) drop() {
	pt := &h.t.parts[h.part]
	if !h.ranOut {
		pt.live--
		if h.auto {
			pt.auto--
		}
	}
	for i, f := range h.t.fixed {
		if f == h {
			h.t.fixed = append(h.t.fixed[:i], h.t.fixed[i+1:]...)
			break
		}
	}
}

// abandon is the Unlock of a hold whose tenure has ended. If it ended without word
// from Redis, the lock may still stand there: now that the critical section is over
// it is released in the background. Session.mu must be held.
func (s *Session) abandon(t *tenure, h *Hold) {
	h.drop()
	if !t.mayStand || t.live() > 0 || s.closed {
		return
	}
	if s.held[tenureKey{t.prim.Key(), t.owner.id}] != nil {
		return // the same owner is in there anew, and that is not to be touched
	}
	for i := range t.parts {
		if pt := &t.parts[i]; pt.told > 0 {
			op := s.releaseOp(t, pt, 0)
			cmd, name := pt.prim.Release(&op), pt.prim.Name()
			pt.told = 0
			s.afterUnlock(func() { s.undo(cmd, name, s.now()+s.cfg.Lease) })
		}
	}
}

// releaseOp is the operation that brings one side of a tenure to want holds.
func (s *Session) releaseOp(t *tenure, pt *part, want int) Op {
	op := Op{Owner: t.owner.id, Known: pt.told, Want: want}
	if t.shared {
		op.Request, op.Remember = idgen.Request(), 2*s.cfg.ReleaseTimeout
	}
	return op
}

// releaseLast ends a tenure whose last hold is unlocked. Its contexts end first:
// they must not outlive the lock. Session.mu must be held and is released.
func (s *Session) releaseLast(ctx context.Context, t *tenure) error {
	t.busy = true
	s.forgetDue(t)
	t.cancelAll(ErrReleased)
	// With a subscription the message tells when the lock is free, and it may be
	// here before the answer. Without, the line waits for the answer.
	if l := t.line; l != nil && l.holder == t && l.listener != nil {
		l.settle(s.now() + s.cfg.PollFloor)
	}
	var errs error
	gone := false
	for i := range t.parts {
		pt := &t.parts[i]
		if pt.told == 0 {
			continue
		}
		op := s.releaseOp(t, pt, 0)
		s.unlock()
		cmd := pt.prim.Release(&op)
		left, err := s.sendRelease(ctx, cmd)
		s.mu.Lock()
		pt.told = 0
		gone = gone || (err == nil && left.lost)
		if err != nil {
			errs = errors.Join(errs, err)
			name, until := pt.prim.Name(), s.now()+s.cfg.Lease
			s.afterUnlock(func() { s.undo(cmd, name, until) })
		}
	}
	t.state = ended
	delete(s.held, tenureKey{t.prim.Key(), t.owner.id})
	t.passTurn()
	if l := t.line; l != nil {
		t.line = nil
		told := l.holder != t // a message is on its way; a nudge would cost one attempt more
		if !told {
			l.holder = nil
		}
		if l.holder == nil && (!told || errs != nil || gone) {
			l.nudge()
		}
		s.leaveLine(l)
	}
	if gone && errs == nil {
		errs = ErrLost
		s.afterUnlock(func() {
			s.cfg.Trace.lost(t.prim.Name(), t.owner.id, "it was gone when it was unlocked")
		})
	}
	s.unlock()
	return errs
}

// releaseOne unlocks one of several holds. Session.mu must be held and is released.
func (s *Session) releaseOne(ctx context.Context, t *tenure, h *Hold) error {
	pt := &t.parts[h.part]
	op := s.releaseOp(t, pt, pt.live)
	op.Keep = t.deserves(s.now())
	s.reschedule(t)
	t.busy = true
	s.unlock()
	cmd := pt.prim.Release(&op)
	left, err := s.sendRelease(ctx, cmd)
	s.mu.Lock()
	defer s.unlock()
	defer t.passTurn()
	switch {
	case err != nil && t.shared:
		// The request is remembered by its id, so it may be sent whenever.
		pt.told = op.Want
		name, until := pt.prim.Name(), s.now()+s.cfg.Lease
		s.afterUnlock(func() { s.undo(cmd, name, until) })
		return err
	case err != nil:
		return err // told stays: the next release of this tenure puts it right
	case t.state == ended:
		return s.endedErr(t)
	case left.lost:
		t.lose("it was gone when it was unlocked")
		return ErrLost
	}
	pt.told = op.Want
	if op.Keep > 0 && !t.shared {
		t.trust = min(t.trust, t.lastEnd())
		s.reschedule(t)
	}
	return nil
}

// deserves returns how long the lock must stand for the holds that are left, 0 to
// leave it as it is. Session.mu must be held.
func (t *tenure) deserves(now time.Duration) time.Duration {
	if t.auto() > 0 || t.shared {
		return 0
	}
	var until time.Duration
	for _, h := range t.fixed {
		until = max(until, h.until)
	}
	return max(until-now, time.Millisecond)
}

// lastEnd returns when the last fixed lease ends. Session.mu must be held.
func (t *tenure) lastEnd() time.Duration {
	var end time.Duration
	for _, h := range t.fixed {
		end = max(end, h.end)
	}
	return end
}

// released is what a release script answered.
type released struct {
	lost bool // nothing was held, and no earlier run of the command can be why
}

// sendRelease sends a release until it is answered, refused for good, or ctx ends.
func (s *Session) sendRelease(ctx context.Context, cmd Command) (released, error) {
	resent := false
	for n := 0; ; n++ {
		reply, err := s.run(ctx, cmd).AsIntSlice()
		if err == nil {
			return released{lost: len(reply) == 2 && reply[1] == 0 && !resent}, nil
		}
		switch classify(err) {
		case refused:
			return released{}, err
		case unknown:
			resent = true
		}
		if ctx.Err() != nil || pause(ctx, n) != nil {
			return released{}, fmt.Errorf("not confirmed within the release timeout: %w", err)
		}
	}
}
