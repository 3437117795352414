package engine

import (
	"time"

	"relock/internal/kind"
	"relock/internal/redis"
	"relock/internal/script"
)

// admitMore repeats a release in the background while its script has not reached a live entry: one run passes over at
// most 16 entries of dead sessions.
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

// mostAgain is how often admitMore repeats a release, at most.
const mostAgain = 1000

// enterByRelease prepares the front of the queue to enter the line by the release of a claim, and returns the front's claim.
// It returns nil if it is known that no other session waits, or if the front asks by itself.
func (l *lock) enterByRelease(c *claim, op *Op) *claim {
	if c.run != nil {
		return l.requeueBy(c.run, op)
	}
	a := l.queue.Front()
	if !c.kind.HandsOver || !c.kind.Lines || c.kind.Permits || !a.kind.HandsOver || l.state != lockOpen || a.busy() ||
		a.claim != nil || a.waitErr != nil || l.s.redis.Inbox.Deaf() || l.needContention().turns.Alone() {
		return nil
	}
	a.prepare()
	a.op.Line.Head, a.op.Line.Waiting = a.claim.entryHead(), l.waitingToReport()
	a.claim.awaits, a.attempts.MayHaveRun = anAnswer, true
	op.Line.Enter, op.Line.Waiting = a.op.Line.Head+a.claim.ownerID(), a.op.Line.Waiting
	return a.claim
}

// enteredByRelease handles the outcome of a release that was to enter a claim in the line.
func (l *lock) enteredByRelease(c *claim, r *redis.Released, sent time.Duration, doubts uint32, err error) {
	if c.run != nil {
		l.requeued(c, r, sent, doubts, err)
		return
	}
	c.awaits = nothing
	if c.account != nil {
		c.account.Wake()
	}
	a := l.queue.Front()
	waits := a != nil && a.claim == c
	if waits {
		a.wake.Up() // it was busy, and waits for messages and for its next attempt from now on
	}
	switch {
	case c.state != asking: // it was ended meanwhile: perhaps before it has entered
		if err != nil || r.Lost || r.Resent || r.Line.Position > 0 {
			c.dismiss()
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
		ct.next.soon = true // it may stand there
		return
	}
	a.attempts.MayHaveRun = false
	if r.Line.Position > 0 {
		g := answer{sent: sent, doubts: doubts}
		g.Value, g.Token = -1, r.Line.At
		a.stands(g)
	}
}

// enteredLate returns what the clean-up does when Redis answers a release that had no answer in time. The release may
// have entered a claim that was over already; the command that ended the claim ran before, and did not find the entry.
// It returns nil if the release enters no claim.
func (e *claimRelease) enteredLate() (done func(error)) {
	entering := e.entering // e stays off the heap
	if entering == nil {
		return nil
	}
	return func(err error) {
		if err == nil {
			l := entering.lock
			l.mu.Lock()
			entering.dismissLate()
			l.unlockInBackground()
		}
	}
}

// dismissLate dismisses a claim that was over before a release has entered it. c may be nil.
func (c *claim) dismissLate() {
	if c != nil && c.state == finished { // one that still asks ends behind this
		c.dismiss()
	}
}

// dismiss releases in the background what a claim that is over may have in Redis, its entry in the line included: its
// attempt, or the release that has entered it, may have run after its own release.
func (c *claim) dismiss() {
	s, now, op := c.lock.s, c.lock.s.now(), c.op()
	op.Line.Head = c.entryHead()
	until := c.latestEnd(now)
	if r := c.run; r != nil {
		until = max(until, now+r.Lease)
	}
	j := redis.Job{Name: c.prim.Names().Name(), Until: until}
	for _, cmd := range c.account.Releases(nil, c.prim, op) {
		j.Cmds = append(j.Cmds, c.wholly(cmd.Command, until))
	}
	s.cleanup.Add(j)
}

// passEntry gives the claim of a front that leaves, and its place in the line, to the next caller, if both want
// the same.
func (a *acquisition) passEntry(next *acquisition) {
	c, l := a.claim, a.lock
	if c == nil || !a.kind.Lines || c.state != asking || l.contention == nil || next.claim != nil || next.busy() || next.waitErr != nil ||
		a.kind != next.kind || a.n != next.n || a.named != "" || next.named != "" || a.opts.Alone() || next.opts.Alone() {
		return
	}
	if c.awaits != anAnswer && (l.contention.place.Claim != c || a.attempts.MayHaveRun || a.attempts.MayCome) {
		return
	}
	if head := l.s.plainHead; c.prim.(kind.Liner).Entry(head) != next.prim.(kind.Liner).Entry(head) {
		return // its tokens have an end, and those of the claim have none, or the other way round
	}
	next.claim, next.op = c, a.op
	next.attempts.MayHaveRun = c.awaits == anAnswer
	a.claim, a.attempts.MayHaveRun = nil, false
}
