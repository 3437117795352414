package engine

import (
	"cmp"
	"time"

	"relock/internal/clock"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/pubsub"
)

// loop waits for the lock: ask, listen, ask again, sleep. Of a fair lock the first waiter of a run asks, for the
// run; of other locks the front asks. Whatever loop returns, a section may have been handed over: then a.given is
// set. The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) loop() (answer, error) {
	l, fair := a.lock, a.kind.Fair
	// A named owner may hold the lock elsewhere already, and the queue may be waiting for
	// just that hold to end. So it asks once when it has queued, wherever it stands, and again
	// each poll floor until its turn has come.
	askAnyway := a.named != ""
	announced := false
	for {
		switch {
		case a.given.Load() != nil || a.letIn:
			return answer{}, nil
		case a.waitErr != nil:
			return answer{}, a.waitErr
		case l.state != lockOpen:
			return answer{}, ErrClosed
		case fair && l.runs.Leads(&a.member, l.s.now()) && (!l.hasAsync || !l.releases() || a.canPiggyback()):
			a.askForRun()
			continue
		// While a claim of this session holds the lock, the front waits until the claim is handed over,
		// released or lost; or it piggybacks the release.
		case !fair && !a.busy() && (askAnyway || l.queue.First == &a.node &&
			(l.contention == nil || l.s.now() >= a.nextAttempt()) &&
			(l.holder == nil || l.hasAsync && a.canPiggyback())):
			if l.contention != nil && l.holder == nil && l.queue.First == &a.node && l.listensFirst() {
				a.listen()
				continue
			}
			askAnyway = false
			g, err := a.ask()
			if err == nil && g.Status == granted && a.claim.state == asking {
				return g, nil
			}
			if err, over := a.denied(g, err); over {
				return g, err
			}
			continue
		}
		if !announced {
			announced = true
			if err := a.aboutToWait(); err != nil {
				return answer{}, err
			}
			continue
		}
		timedOut, err := a.waitForEvent()
		if err != nil {
			return answer{}, err
		}
		askAnyway = timedOut && a.named != ""
	}
}

// aboutToWait announces a caller that is going to wait to the hooks, the watch for deadlocks and
// Shutdown. It runs code of the caller's. The lock's mutex must be held; it is released meanwhile and
// held again at the end.
func (a *acquisition) aboutToWait() error {
	l, c := a.lock, a.claim
	if r := a.member.Run; r != nil {
		c = r.Of
	}
	l.unlock()
	a.undo = (*acquisition).quit
	if l.s.trace != nil {
		a.traceWaiting(c)
	}
	outside, around := true, a.ctx
	if a.opts.Keeps != nil {
		around = a.around()
	}
	if around.Value(sectionKey{}) != nil {
		outside = !l.s.inSection(around)
		a.mayBlock()
	} else if around.Value(severalKey{}) != nil {
		outside = !l.s.inSection(around)
	}
	a.undo = nil
	l.mu.Lock()
	a.outside = outside
	if outside && l.s.life.Draining.Load() {
		return ErrClosed
	}
	return nil
}

// denied handles an answer that is no grant to the claim that asks, or an error that stands for an
// answer; over ends the wait, with why. The lock's mutex must be held; it is released meanwhile and held
// again at the end.
func (a *acquisition) denied(g answer, err error) (why error, over bool) {
	l := a.lock
	refusal := err == nil && g.Status == refused
	stands := refusal && a.kind.Lines && g.Position > 0 && l.queue.First == &a.node && a.claim.state == asking
	answered := a.kind.Permits && a.claim.state == asking && (err != nil || refusal)
	if answered && refusal {
		a.hearLimit(g)
	}
	if stands {
		a.stands(g)
	}
	if answered {
		l.deliverPermits()
	}
	if a.given.Load() != nil { // by a message that came before the answer, or in memory
		return nil, false
	}
	switch {
	case a.claim.state != asking: // it was ended meanwhile: the next attempt is another claim's
		a.abandonClaim()
		return ErrClosed, l.state != lockOpen
	case err != nil:
		over = a.failed(&err)
		return err, over
	case g.Status == forGood:
		if a.kind.Permits { // it is more than the limit, and so may others behind it be
			a.hearLimit(answer{Answer: kind.Answer{Sized: true, Limit: g.Value}})
		}
		return g.never(a.prim), true
	case l.queue.First != &a.node, stands:
		return nil, false
	case a.op.Line.Head != "" && l.s.Cluster(): // its slot moves: one node has the lock, and another one publishes its releases
		ct := l.needContention()
		ct.mustHearAll, ct.everywhere = !ct.everywhere, true
	}
	// A refusal may be older than a release that the session has sent meanwhile: then it does
	// not say that others took what came free, and the time of the next attempt stays as that release set it.
	ct := l.needContention()
	stale := ct.turns.Expecting
	if !stale {
		ct.turns.Taken()
	}
	if l.s.cfg.Polling != nil {
		return ErrNotAcquired, !a.pollAgain(g.Value)
	}
	if !stale {
		l.attemptAfter(g.Value)
	}
	a.listen()
	return nil, false
}

// failed pauses after an attempt without an answer, and reports whether the wait ends with
// *err. The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) failed(err *error) bool {
	l := a.lock
	refusal := script.Classify(*err) == script.Refused
	if !refusal && a.forgotten() {
		a.abandonClaim()
	}
	l.unlock()
	a.undo = (*acquisition).quit
	over := a.done()
	if !over && !refusal { // a wake-up ends the pause
		a.sleep(clock.Doubling(a.attempts.Failures, l.s.pauseAfter()), nil)
		over = a.done()
	}
	if over {
		*err = a.ended()
	}
	a.undo = nil
	l.mu.Lock()
	return over || refusal
}

// abandonClaim ends the claim that was asked for, which may stand in Redis; the acquisition makes
// another one.
func (a *acquisition) abandonClaim() {
	a.giveUp()
	a.claim = nil
	a.attempts.Forget()
}

// pollAgain says when the caller in front asks again, in a session that polls: when its
// Backoff says so, or when Redis said that it is worth while, in so many milliseconds (-1: Redis does
// not know). It reports false when the Backoff gives up. The lock's mutex must be held; it is
// released meanwhile and held again at the end.
func (a *acquisition) pollAgain(ms int64) bool {
	l := a.lock
	l.unlock()
	a.undo = (*acquisition).quit
	d, ok := a.nextPause(l.s.cfg.Polling)
	a.undo = nil
	l.mu.Lock()
	if ms >= 0 && ms < d.Milliseconds() {
		d = time.Duration(ms+1) * time.Millisecond // PTTL is rounded down
	}
	if ok && l.queue.First == &a.node {
		l.needContention().next.at = l.s.now() + d
	}
	return ok
}

// waitForEvent waits until there may be something to do: the acquisition came to the front, was woken,
// or the time of the next attempt has come. It returns an error when the caller's context or Wait is over. The
// lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) waitForEvent() (timedOut bool, err error) {
	l := a.lock
	var messages <-chan pubsub.Message
	sleep, fair := never, a.kind.Fair
	switch r := a.member.Run; {
	case r != nil && r.First() == &a.member:
		now := l.s.now()
		if l.runs.Leads(&a.member, now) && !(l.hasAsync && l.releases()) { // the time to ask may have come just now
			return false, nil // given is nil: the mutex was held all along
		}
		if at := r.NextAsk; at > now { // else another run comes first
			sleep = at - now
		}
	case a.named != "" && !fair:
		sleep = l.s.cfg.PollFloor
	}
	if ct := l.contention; l.queue.First == &a.node && ct != nil && !fair {
		if ct.listener != nil {
			messages = ct.listener.C()
		}
		if l.holder == nil && !a.busy() {
			if sleep = a.nextAttempt() - l.s.now(); sleep <= 0 { // the time to yield may have ended just now
				return false, nil // given is nil: the mutex was held all along
			}
		}
	}
	l.unlock()
	a.undo = (*acquisition).quit
	message, timedOut := a.sleep(sleep, messages)
	given := a.given.Load() != nil
	over := !given && a.done()
	if over && fair { // the attempts belong to the run
		l.mu.Lock()
		if r := a.member.Run; r != nil {
			a.attempts.Err = cmp.Or(a.attempts.Err, r.Err)
		}
		l.unlock()
	}
	if over {
		err = a.ended()
	}
	a.undo = nil
	l.mu.Lock()
	if message && !given {
		l.hearRelease()
	}
	return timedOut, err
}

// sleep returns after d, which may be never; or earlier, when the time that Wait gave is over, the caller is woken, its
// context ends or a message comes. No mutex may be held.
func (a *acquisition) sleep(d time.Duration, messages <-chan pubsub.Message) (message, timedOut bool) {
	if a.deadline != 0 {
		d = max(0, min(d, a.deadline-a.lock.s.now()))
	}
	if d == never && messages == nil { // as mostly: a timer would cost more
		select {
		case <-a.wake:
		case <-a.ctx.Done():
		}
		return false, false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.wake:
	case <-a.ctx.Done():
	case <-messages:
		message = true
	case <-timer.C:
		timedOut = true
	}
	return message, timedOut
}
