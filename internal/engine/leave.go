package engine

import (
	"time"

	"relock/internal/kind"
	"relock/internal/life"
)

// leave takes the caller out of the queue; won: with the lock.
func (a *acquisition) leave(won bool) {
	if !a.queued {
		return
	}
	l := a.lock
	wasFront := l.queue.First == &a.node
	l.queue.Remove(&a.node)
	a.queued = false
	if l.queue.First == nil {
		if l.contention != nil && l.contention.listener != nil {
			l.endSubscription()
		}
		if a.kind.Permits {
			l.deliverPermits()
		}
		return
	}
	if a.kind.Permits {
		defer l.deliverPermits()
	}
	next := l.queue.First.Of
	if wasFront && !won {
		a.passEntry(next)
	}
	if wasFront {
		next.wake.Up() // it waits for messages and for its next attempt from now on
	}
	k := a.kind
	switch {
	case k.Fair: // it leaves its run
	case k.Lines && wasFront && !won && l.holder == nil &&
		(next.claim == nil || l.contention == nil || l.contention.place.Claim != next.claim && !next.busy()):
		l.askAtOnce() // it does not stand in the line
	case k.Exclusive && (won || k == next.kind || l.holder != nil):
		// An attempt of the next caller would be refused: this caller has the lock, or another claim still keeps both out.
	case won || wasFront:
		l.askAtOnce() // what let this one in, or was not enough for it, may let in the next one
	}
}

// fail undoes what a failed acquisition has done. The lock's mutex must be held; it is
// released.
func (a *acquisition) fail(err error) error {
	a.noteHolder()
	a.leave(false)
	gone := a.giveUp()
	if a.member.Run != nil {
		gone = a.leaveRun()
	}
	a.lock.unlock()
	if gone != nil {
		// What should take one round trip is waited for, and no longer when Redis does not answer: a
		// waiter that leaves should find itself gone from the line.
		life.Await(gone, 100*time.Millisecond)
	}
	return err
}

// giveUp ends the claim of a failed acquisition: what may have been granted is released in the
// background. The channel is closed when that is done; it is nil if there is no need to wait for it.
func (a *acquisition) giveUp() <-chan struct{} {
	c := a.claim
	if c == nil || c.state != asking {
		return nil
	}
	k := a.kind
	late := a.attempts.MayCome && k.Unleased // what it takes has no lease; the release leaves a mark that stops it
	// A writer that polls may have left a mark too.
	stands := c.lock.stands(c) || k.Writes && a.op.Wait && a.op.Line.Head == ""
	// An attempt of a kind that opens has taken nothing, whatever its outcome is.
	if k.Opens || !a.attempts.MayHaveRun && !late && !stands {
		c.retire(finished)
		c.endRequest()
		return nil
	}
	gone, most := make(chan struct{}), a.lease
	if a.attempts.Midway {
		most = a.lock.s.cfg.AnswerTime()
	}
	c.endBy(a.lock.s.now()+most, gone)
	if stands || a.attempts.Midway { // a caller that is denied again and again must not send more than the clean-up ends
		return gone
	}
	return nil
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
