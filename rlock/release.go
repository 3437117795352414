package rlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"
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
	if t.host != nil {
		return s.unlockGuest(h)
	}
	if next := s.successor(t); next != nil && s.handOver(h, next) {
		to := next.t.owner.id
		s.unlock()
		s.cfg.Trace.handedOver(t.prim.Name(), t.owner.id, to)
		return nil
	}
	return s.release(h)
}

// release ends a hold that Redis knows. Session.mu must be held and is released.
func (s *Session) release(h *Hold) error {
	t := h.t
	s.active++
	defer s.leave()
	ctx := s.releaseContext()
	if err := h.waitTurn(ctx); err != nil {
		s.mu.Lock()
		h.drop()
		t.untidy = true
		if t.live() == 0 { // whoever has the turn releases, see passTurn
			s.forgetDue(t)
			t.cancelAll(ErrReleased)
		} else if h.id != "" {
			t.unsent = append(t.unsent, h)
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

// releaseContext returns a context that ends when a release that begins now has taken too
// long: after Config.ReleaseTimeout, or up to an eighth earlier, since those that begin
// within that time share one. A timer for each release would cost more than all else
// that the client does for it. Session.mu must be held.
func (s *Session) releaseContext() context.Context {
	if now := s.now(); s.releasing == nil || now >= s.releasingUntil {
		s.releasing, s.stopReleasing = context.WithTimeout(context.Background(), s.cfg.ReleaseTimeout)
		s.releasingUntil = now + s.cfg.ReleaseTimeout/8
	}
	return s.releasing
}

// waitTurn waits for the tenure's turn; see there. The release of the last hold takes it
// from a transfer that is under way, where one command can name all owners that Redis may
// know.
func (h *Hold) waitTurn(ctx context.Context) error {
	t := h.t
	if t.transfer != nil && t.turn == nil && t.live() == 1 && !h.ranOut && h.id == "" {
		return nil
	}
	return t.waitTurn(ctx)
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
	h.t.fixed = slices.DeleteFunc(h.t.fixed, func(f *Hold) bool { return f == h })
	h.endContext(ErrReleased) // its own, if it has one; a section shared with others goes on
}

// abandon is the Unlock of a hold whose tenure has ended. If it ended without word
// from Redis, the lock may still stand there: now that the critical section is over
// it is released in the background. Session.mu must be held.
func (s *Session) abandon(t *tenure, h *Hold) {
	h.drop()
	if t.host != nil {
		t.lapsedOut()
		return
	}
	if !t.mayStand || t.live() > 0 || s.closed {
		return
	}
	key := tenureKey{t.prim.Key(), t.owner.id}
	if s.held[key] != nil {
		// The same owner is in there anew. Only what has an id can be told apart.
		for i := range t.parts {
			t.parts[i].first = false
		}
	} else {
		s.held[key] = t
	}
	s.releaseBehind(t, s.now()+s.cfg.Lease)
}

// releases returns the commands that end all that Redis counts for a tenure, and takes
// it off the account; appended to cmds. Session.mu must be held.
func (t *tenure) releases(cmds []Command) []Command {
	t.detach()
	var names []Entry
	if t.debt != nil {
		names = t.debt.names
	}
	for i := range t.parts {
		pt := &t.parts[i]
		if pt.first {
			op := Op{Owner: t.owner.id, ByID: pt.byID}
			for _, e := range names {
				op.Also = append(op.Also, e.Owner)
			}
			cmds = append(cmds, pt.prim.Release(&op))
		}
		for _, e := range names { // in this order: a transfer that is late goes the same way
			if e.ID != "" && i == t.prim.Part() {
				cmds = append(cmds, pt.prim.Release(&Op{Owner: e.Owner, Ends: []string{e.ID}}))
			}
		}
		if len(pt.ids) > 0 {
			cmds = append(cmds, pt.prim.Release(&Op{Owner: t.owner.id, Ends: pt.ids}))
		}
		pt.first, pt.ids = false, nil
	}
	return cmds
}

// releaseBehind ends what is left of a tenure in the background. It stays on the books
// until that is done, so that the owner begins anew only then: a release that comes
// late must not meet its next hold. Session.mu must be held.
func (s *Session) releaseBehind(t *tenure, until time.Duration) {
	t.state = ended
	s.forgetDue(t)
	t.cancelAll(ErrReleased)
	t.vacate(true)
	s.sendBehind(t, t.releases(nil), until)
}

// sendBehind has cmds done in the background and then forgets t, which has ended.
// Session.mu must be held.
func (s *Session) sendBehind(t *tenure, cmds []Command, until time.Duration) {
	if len(cmds) == 0 {
		s.forget(t)
		t.passTurn()
		return
	}
	t.busy, t.behind = true, true
	left := len(cmds)
	forget := func(bool) {
		if left--; left == 0 {
			s.forget(t)
			t.passTurn()
		}
	}
	for _, cmd := range cmds {
		s.undo(undoing{cmd: cmd, name: t.prim.Name(), until: until, done: forget})
	}
}

// over returns when the lock is over in Redis at the latest, should nothing be heard of
// it any more: a renewal may just be under way. Session.mu must be held.
func (s *Session) over(t *tenure) time.Duration {
	return max(s.now()+s.cfg.Lease, t.trust+time.Second)
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
		l.settle(s.now(), s.cfg.PollFloor)
	}
	var errs error
	var unsent []Command
	gone := false
	until := s.over(t)
	var buf [2]Command
	for _, cmd := range t.releases(buf[:0]) {
		s.unlock()
		left, err := s.sendRelease(ctx, cmd)
		s.mu.Lock()
		gone = gone || (err == nil && left.lost)
		if err != nil {
			errs = errors.Join(errs, err)
			unsent = append(unsent, cmd)
		}
	}
	t.state = ended
	if l := t.line; l != nil {
		t.leaveReaders()
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
	s.sendBehind(t, unsent, until)
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
	op := Op{Owner: t.owner.id, Keep: t.deserves(s.now()), ByID: pt.byID}
	if h.id != "" {
		op.Ends = []string{h.id}
		pt.ids = slices.DeleteFunc(pt.ids, func(id string) bool { return id == h.id })
	} else {
		pt.first = false
	}
	op.Holds, op.Other = pt.told(), t.parts[1-h.part].told()
	if op.Keep > 0 {
		op.IDs, op.OtherIDs = slices.Clone(pt.ids), slices.Clone(t.parts[1-h.part].ids)
	}
	until := s.over(t)
	s.reschedule(t)
	t.busy = true
	s.unlock()
	cmd := pt.prim.Release(&op)
	left, err := s.sendRelease(ctx, cmd)
	s.mu.Lock()
	defer s.unlock()
	if pt.live == 0 && pt.prim.Traits().Exclusive {
		t.vacate(true) // a downgrade: what is left of the tenure lets others in
	}
	if err != nil {
		// It goes on in the background. A hold by id may end whenever; behind any
		// other nothing of this owner must overtake it.
		t.untidy = true
		u := undoing{cmd: cmd, name: pt.prim.Name(), until: until}
		if h.id == "" {
			t.behind = true
			u.done = func(bool) { t.passTurn() }
		} else {
			t.passTurn()
		}
		s.undo(u)
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
	if op.Keep > 0 {
		t.trust = min(t.trust, t.lastEnd())
		s.reschedule(t)
	}
	return nil
}

// deserves returns how long the lock must stand for the holds that are left, 0 to
// leave it as it is. Session.mu must be held.
func (t *tenure) deserves(now time.Duration) time.Duration {
	if t.auto() > 0 {
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
	var buf [2]int64
	for n := 0; ; n++ {
		reply, err := numbers(buf[:0], s.run(ctx, cmd))
		if cmd.widen(reply) {
			continue
		}
		if err == nil {
			return released{lost: len(reply) == 2 && reply[1] == 0 && !resent}, nil
		}
		switch classify(err) {
		case refused:
			return released{}, err
		case unknown:
			// When rueidis closes a connection under a command it follows a failover.
			// What the next server does not know was more likely lost there than
			// released here, and a false ErrLost does no harm, a false nil does.
			resent = resent || !errors.Is(err, rueidis.ErrClosing)
		}
		if ctx.Err() != nil || pause(ctx, n) != nil {
			return released{}, fmt.Errorf("not confirmed within the release timeout: %w", err)
		}
	}
}
