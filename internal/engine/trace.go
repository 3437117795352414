package engine

import (
	"context"
	"slices"
	"time"

	"relock/internal/holds"
	"relock/internal/kind"
	"relock/internal/redis"
	"relock/internal/report"
	"relock/internal/script"
	"relock/internal/waiting"
	"relock/locktrace"
	"relock/pubsub"
)

// Hooks are called outside of every mutex, and never in the watchdog. Session.trace is nil without a Trace.

// about describes a lock and an owner for the hooks. The owner of an acquisition's claim is given only
// when the caller has it, or waits for it.
func about(p Primitive, owner string, n int) report.About {
	return report.About{Name: p.Names().Name(), Kind: p.Kind().HookName(), Owner: owner, N: max(n, 1)}
}

// traceWaiting reports to the hooks, which there must be, that the caller waits, by a claim if it has one.
func (a *acquisition) traceWaiting(c *claim) {
	owner := a.named
	if c != nil {
		owner = c.ownerID()
	}
	a.lock.s.trace.Waiting(&a.traced, about(a.prim, owner, a.n))
}

// releaseStart calls the hook ReleaseStart. Others wait for the release, and not for code of the caller's: the hook has the
// release timeout, as Redis has. If it blocks for longer, or ends the goroutine, quit is called, which is to have the release
// sent without it. late is then the error that stands for the answer; end has been told of it. A nil Hold has no hook.
func (s *Session) releaseStart(d *report.Hold, quit func()) (end func(err error, gone bool), late error) {
	if d == nil {
		return func(error, bool) {}, nil
	}
	timer := time.AfterFunc(s.cfg.ReleaseTimeout, quit)
	end = d.ReleaseStart(func() {
		if timer.Stop() {
			quit()
		}
	})
	if !timer.Stop() {
		late = redis.NotReleased(context.DeadlineExceeded)
		end(late, false)
	}
	return end, late
}

// sendTraced is the rest of claim.release with hooks. ReleaseEnd comes behind the answer.
func sendTraced(e claimRelease, cmds []redis.ReleaseCommand, d *report.Hold) error {
	l, s := e.c.lock, e.c.lock.s
	all := slices.Clone(cmds) // those of the caller are on its stack
	done, late := s.releaseStart(d, func() { e.quit(all) })
	if late != nil {
		return late
	}
	r, sent := s.redis.Sender.Release(s.releaseLimit.At(e.now), all...)
	l.mu.Lock()
	err := e.answered(all, &r, sent)
	l.unlock()
	done(sent, r.Lost)
	return err
}

// quit has the clean-up send a release, since the hook ReleaseStart blocks, or has ended the goroutine of its Unlock. No mutex
// may be held.
func (e *claimRelease) quit(cmds []redis.ReleaseCommand) {
	l, r := e.c.lock, redis.Released{Receivers: -1, Unconfirmed: commandsOf(cmds)}
	l.mu.Lock()
	_ = e.answered(cmds, &r, report.ErrQuit)
	l.unlock()
}

// quit is that of a claimRelease whose claim goes on.
func (e *innerRelease) quit(cmds []redis.ReleaseCommand) {
	c := e.section.claim
	l, s := c.lock, c.lock.s
	l.mu.Lock()
	s.cleanup.Add(redis.Job{Name: c.prim.Names().Name(), Cmds: commandsOf(cmds), Until: c.latestEnd(s.now()), Done: e.done})
	_ = e.answered(false, report.ErrQuit)
	l.unlock()
}

// quit sends a release that no caller waits for.
func (d *asyncRelease) quit() {
	l := d.c.lock
	l.mu.Lock()
	d.traceDone = func(error, bool) {} // it is told by releaseStart
	d.send()
	l.unlock()
}

func commandsOf(all []redis.ReleaseCommand) (cmds []script.Command) {
	for _, cmd := range all {
		cmds = append(cmds, cmd.Command)
	}
	return cmds
}

// traceEnd reports to the hooks, which there must be, that the call ends, and that its hold begins
// if it got one. If a hook ends the goroutine, the hold ends too, since no caller has it.
func (a *acquisition) traceEnd(t *report.Tracer, hold *Hold, err error) {
	owner, returned := a.named, false
	if hold != nil {
		owner = hold.Owner()
	}
	defer func() {
		if !returned && hold != nil {
			_ = hold.Unlock(false)
		}
	}()
	t.AcquireEnd(a.ctx, &a.traced, about(a.prim, owner, a.n), report.OutcomeOf(err, !a.wait), hold != nil, err)
	returned = true
}

func (c *claim) about() report.About { return about(c.prim, c.ownerID(), int(c.n)) }

// traceHandedOver reports a hand-over of the claim to the hooks, which there must be.
func (c *claim) traceHandedOver() { c.lock.s.trace.Hooks.HandedOver(locktrace.HandedOver(c.about())) }

// traceLine reports a message to a claim of a kind to the hooks, which there must be. The hooks run later: a mutex may be
// held.
func (s *Session) traceLine(m *waiting.Message, k *kind.Kind) {
	t, names := s.trace, s.NamesOf(m.Key)
	e := locktrace.Line{Name: names.Name(), Kind: k.HookName(), What: locktrace.LineCalled}
	switch {
	case m.Granted:
		e.What = locktrace.LineGranted
	case m.After > 0:
		e.What = locktrace.LineOpen
	}
	s.notes.Add(func() { t.Hooks.Line(e) })
}

// traceKept reports to the hooks, if there are any, what happens to a claim that may be kept. They run later: a mutex
// may be held. A lock is kept and used again without Redis, and so faster than a hook may run: what waits for it must not
// grow for ever. So a beginning may be dropped, and its end with it.
func (c *claim) traceKept(what locktrace.KeptEvent) {
	t, n := c.lock.s.trace, c.lock.s.notes
	if t == nil {
		return
	}
	e := locktrace.Kept{Name: c.prim.Names().Name(), Kind: c.kind.HookName(), Owner: c.ownerID(), What: what}
	tell := func() { t.Hooks.Kept(e) }
	switch what {
	case locktrace.KeptBegins:
		c.lock.contention.keeper.told = n.Add(tell)
	case locktrace.KeptWanted:
		n.Add(tell)
	default:
		if c.lock.contention.keeper.told {
			n.AddSurely(tell)
		}
	}
}

// subscriptionChanged is called under the hub's mutex.
func (s *Session) subscriptionChanged(e pubsub.Event) {
	if e.State == pubsub.Lost || e.State == pubsub.Refused {
		s.unheard.CompareAndSwap(0, int64(s.now()))
	}
	if t := s.trace; t != nil {
		state := [...]locktrace.SubscriptionState{locktrace.SubscriptionConnected, locktrace.SubscriptionLost, locktrace.SubscriptionClosed, locktrace.SubscriptionRefused}[e.State]
		s.notes.AddSurely(func() { t.Hooks.Subscription(locktrace.Subscription{State: state, Node: e.Node, Err: e.Err}) })
	}
}

// endTrace notes that a hold has ended otherwise than by an Unlock. The lock's mutex must be
// held.
func (x *section) endTrace(h *holds.Hold, why locktrace.HoldReason) {
	s := x.claim.lock.s
	if d := x.holds.Unfollow(h); d != nil && d.End(why, s.now()) {
		s.notes.AddSurely(d.Tell)
	}
}

// endTraces does so for all holds of a section that ends.
func (x *section) endTraces(why locktrace.HoldReason) {
	for _, h := range x.holds.Followed() {
		x.endTrace(h, why)
	}
}

// traced returns what the hooks follow the hold by, and the time: the hold is about to be
// unlocked. It is nil without a Trace, or when the hold has ended. No mutex may be held.
func (h *Hold) traced() (d *report.Hold, now time.Duration) {
	l := h.section.claim.lock
	if l.s.trace == nil {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.section.holds.Trace(&h.held), l.s.now()
}
