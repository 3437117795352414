package engine

import (
	"time"

	"relock/internal/kind"
	"relock/internal/redis"
	"relock/internal/script"
)

// admitMore has a release sent again in the background as long as the script has not looked at all entries: so
// many sessions that stood in front have died.
func (s *Session) admitMore(cmd script.Command) {
	s.life.Background.Go(func() {
		for range mostAgain {
			r, err := s.redis.Sender.Release(s.releaseLimit.At(s.now()), redis.ReleaseCommand{Command: cmd})
			if err != nil || r.Line.Position >= 0 {
				return
			}
		}
	})
}

// mostAgain bounds that: each time 16 entries are looked at.
const mostAgain = 1000

// enterByRelease prepares the front of the queue to enter the line by the release of a claim; nil if it does not:
// no other session waits as far as is known, or the front asks by itself.
func (l *lock) enterByRelease(c *claim, op *Op) *claim {
	if c.run != nil {
		return l.requeueBy(c.run, op)
	}
	a := l.queue.Front()
	if !c.kind.HandsOver || !c.kind.Lines || c.kind.Permits || !a.kind.Lines || l.state != lockOpen || a.busy() ||
		a.claim != nil || a.waitErr != nil || l.s.redis.Inbox.Deaf() || l.needContention().turns.Alone() {
		return nil
	}
	a.prepare()
	a.op.Line.Head, a.op.Line.Waiting = a.claim.entryHead(), l.waitingToReport()
	a.claim.inFlight, a.attempts.MayHaveRun = true, true
	op.Line.Enter, op.Line.Waiting = a.op.Line.Head+a.claim.ownerID(), a.op.Line.Waiting
	return a.claim
}

// enteredByRelease takes in what became of that.
func (l *lock) enteredByRelease(c *claim, r *redis.Released, sent time.Duration, doubts uint32, err error) {
	if c.run != nil {
		l.requeued(c, r, sent, doubts, err)
		return
	}
	c.inFlight = false
	if c.account != nil {
		c.account.Wake()
	}
	a := l.queue.Front()
	waits := a != nil && a.claim == c
	if waits {
		a.wake.Up() // it was busy, and has to look after the messages and the clock from now on
	}
	switch {
	case c.state != asking: // it was ended meanwhile: perhaps before it has entered
		if err != nil || r.Lost || r.Resent || r.Line.Position > 0 {
			c.dismissEntry()
		}
		return
	case l.state != lockOpen:
		c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		return
	case !waits:
		c.end(nil)
		return
	}
	ct := l.needContention()
	if err != nil || r.Lost || r.Resent || r.Line.Others && r.Line.Position <= 0 {
		ct.next.Soon = true // it may stand there
		return
	}
	a.attempts.MayHaveRun = false
	if r.Line.Position > 0 {
		g := grant{sent: sent, doubts: doubts}
		g.Value, g.Token = -1, r.Line.At
		a.stands(g)
	}
}

// enteredLate is what the clean-up does behind a release that had no answer in time, and that Redis has answered
// now: it may have entered a claim just then which was over already. What ended that claim came too early to
// find its entry. nil: it enters none.
func (e *ending) enteredLate() (done func(error)) {
	if e.entering == nil {
		return nil
	}
	return func(err error) {
		if err == nil {
			l := e.c.lock
			l.mu.Lock()
			e.dismissLate()
			l.unlockInBackground()
		}
	}
}

// dismissLate takes back what such a release has entered.
func (e *ending) dismissLate() {
	switch c := e.entering; {
	case c == nil || c.state != finished: // one that still asks ends behind this
	case c.run != nil:
		c.dismiss()
	default:
		c.dismissEntry()
	}
}

// dismissEntry takes out of the line, in the background, what a claim that is over may have there.
func (c *claim) dismissEntry() {
	s := c.lock.s
	cmd := c.prim.(kind.Liner).Dismiss(*c.prim.Names(), c.entryHead(), c.ownerID(), c.num != 0)
	s.cleanup.Add(redis.Job{Name: c.prim.Names().Name(), Cmds: []script.Command{cmd}, Until: s.now() + s.cfg.ReleaseTimeout})
}

// passEntry gives the claim of a front that leaves, and its place in the line, to the next caller, if that
// wants the same.
func (a *acquisition) passEntry(next *acquisition) {
	c, l := a.claim, a.lock
	if c == nil || !a.kind.Lines || c.state != asking || l.contention == nil || next.claim != nil || next.busy() || next.waitErr != nil ||
		a.kind != next.kind || a.n != next.n || a.named != "" || next.named != "" || a.opts.Alone() || next.opts.Alone() {
		return
	}
	if !c.inFlight && (l.contention.place.Claim != c || a.attempts.MayHaveRun || a.attempts.MayCome) {
		return
	}
	if head := l.s.plainHead; c.prim.(kind.Liner).Entry(head) != next.prim.(kind.Liner).Entry(head) {
		return // its tokens have an end, and those of the claim have none, or the other way round
	}
	next.claim, next.op = c, a.op
	next.attempts.MayHaveRun = c.inFlight
	a.claim, a.attempts.MayHaveRun = nil, false
}
