package rlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
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
		if t.live() == 0 { // whoever has the turn releases, see passTurn
			s.forgetDue(t)
			t.cancelAll(ErrReleased)
		}
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
	for _, cmd := range t.releases() {
		s.undo(undoing{cmd: cmd, name: t.prim.Name(), until: s.now() + s.cfg.Lease})
	}
}

// releases returns the commands that end all that Redis counts for a tenure, and takes
// it off the account. Session.mu must be held.
func (t *tenure) releases() (cmds []Command) {
	for i := range t.parts {
		pt := &t.parts[i]
		if own := pt.told - len(pt.ids); own > 0 {
			cmds = append(cmds, pt.prim.Release(&Op{Owner: t.owner.id, Known: own}))
		}
		if len(pt.ids) > 0 {
			cmds = append(cmds, pt.prim.Release(&Op{Owner: t.owner.id, Ends: pt.ids}))
		}
		pt.told, pt.ids = 0, nil
	}
	return cmds
}

// over returns when the lock is over in Redis at the latest, should nothing be heard of
// it any more: a renewal may just be under way. Session.mu must be held.
func (s *Session) over(t *tenure) time.Duration {
	return max(s.now()+s.cfg.Lease, t.trust+time.Second)
}

// releaseBehind ends a tenure without holds in the background. It stays on the books
// until that is done, so that the owner begins anew only then. Session.mu must be held.
func (s *Session) releaseBehind(t *tenure) {
	until := s.over(t)
	t.state = ended
	t.busy = true
	s.forgetDue(t)
	t.cancelAll(ErrReleased)
	t.vacate(true)
	cmds := t.releases()
	left := len(cmds)
	for _, cmd := range cmds {
		s.undo(undoing{cmd: cmd, name: t.prim.Name(), until: until, done: func(bool) {
			if left--; left == 0 {
				s.forget(t)
				t.passTurn()
			}
		}})
	}
	if left == 0 {
		s.forget(t)
		t.passTurn()
	}
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
	until := s.over(t)
	for _, cmd := range t.releases() {
		s.unlock()
		left, err := s.sendRelease(ctx, cmd)
		s.mu.Lock()
		gone = gone || (err == nil && left.lost)
		if err != nil {
			errs = errors.Join(errs, err)
			s.undo(undoing{cmd: cmd, name: t.prim.Name(), until: until})
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
	op := t.releaseOp(h)
	until := s.over(t)
	s.reschedule(t)
	t.busy = true
	s.unlock()
	cmd := pt.prim.Release(&op)
	left, err := s.sendRelease(ctx, cmd)
	s.mu.Lock()
	defer s.unlock()
	if err != nil && t.state != ended {
		// Until this one is through, no other operation of the owner may overtake it.
		s.undo(undoing{cmd: cmd, name: pt.prim.Name(), until: until, done: func(confirmed bool) {
			if confirmed {
				pt.settle(&op)
			}
			t.passTurn()
		}})
		return err
	}
	defer t.passTurn()
	switch {
	case t.state == ended:
		return s.endedErr(t)
	case left.lost:
		t.lose("it was gone when it was unlocked")
		return ErrLost
	}
	pt.settle(&op)
	if pt.live == 0 && pt.prim.Traits().Exclusive {
		t.vacate(true) // a downgrade: what is left of the tenure lets others in
	}
	if op.Keep > 0 && !t.shared {
		t.trust = min(t.trust, t.lastEnd())
		s.reschedule(t)
	}
	return nil
}

// releaseOp is the operation that unlocks h alone, and with it what has run out and was
// not told to Redis yet. Session.mu must be held.
func (t *tenure) releaseOp(h *Hold) Op {
	pt := &t.parts[h.part]
	op := Op{Owner: t.owner.id, Keep: t.deserves(t.s.now())}
	switch {
	case h.id != "":
		op.Ends = []string{h.id}
	case len(pt.ids) == 0:
		op.Known, op.Want = pt.told, pt.live
	default:
		// A hold from before it was known that the owner is shared. Should the reply
		// to this get lost while others hold too, a resend may take one of theirs.
		op.Known = pt.told - len(pt.ids)
		op.Want = op.Known - 1
	}
	return op
}

// settle takes a release that was confirmed off the account. Session.mu must be held.
func (pt *part) settle(op *Op) {
	pt.told -= op.Known - op.Want + len(op.Ends)
	for _, id := range op.Ends {
		if i := slices.Index(pt.ids, id); i >= 0 {
			pt.ids = slices.Delete(pt.ids, i, i+1)
		}
	}
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
