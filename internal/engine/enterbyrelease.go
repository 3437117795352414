package engine

import (
	"time"

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
	a := l.queue.First.Of
	if !c.kind.HandsOver || !c.kind.Lines || c.kind.Permits || !a.kind.HandsOver || l.state != lockOpen || a.busy() ||
		a.claim != nil || a.waitErr != nil || l.s.deaf() || l.needContention().turns.Alone {
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
	front := l.queue.First
	waits := front != nil && front.Of.claim == c
	if waits {
		front.Of.wake.Up() // it was busy, and waits for messages and for its next attempt from now on
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
	ct, a := l.needContention(), front.Of
	if err != nil || r.Lost || r.Resent || r.Line.Others && r.Line.Position <= 0 {
		ct.next.soon = true // it may stand there
		return
	}
	a.attempts.MayHaveRun = false
	if r.Line.Position > 0 {
		g := answer{sent: sent, doubts: doubts}
		g.Value, g.At = -1, r.Line.At
		a.stands(g)
	}
}
