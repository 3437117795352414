package engine

import (
	"context"
	"errors"
	"fmt"

	"relock/internal/account"
	"relock/internal/api"
	"relock/internal/kind"
	"relock/internal/redis"
	"relock/internal/script"
)

// ask sends one attempt of an outermost Lock. The lock's mutex must be held; it is released
// meanwhile and held again at the end.
func (a *acquisition) ask() (answer, error) {
	l, k := a.lock, a.kind
	a.prepare()
	c, op := a.claim, &a.op
	a.inLine()
	if l.contention != nil && op.Wait {
		l.contention.asks()
	}
	if l.hasAsync {
		a.attachPending()
	}
	c.awaits = anAnswer
	a.traced.Attempts++
	e := attempt{c: c, target: a.target, op: op, piggyback: a.piggyback, caller: a.ctx}
	l.unlock()
	a.undo = (*acquisition).quitAsking
	ctx, cancel := a.bounded(a.ctx, a.queued)
	l.s.send(ctx, &e)
	cancel()
	a.undo = nil
	l.mu.Lock()
	g, err := e.answer, e.err
	c.awaits, a.attempts.sent = nothing, g.sent
	if c.account != nil {
		c.account.Wake()
	}
	waits := l.contention != nil && a.queued
	a.attempts.Note(&account.Outcome{Err: err, Granted: g.Status == granted, Unacknowledged: g.unacknowledged, Sent: g.sent, Now: l.s.now(),
		Others: waits && l.contention.answered})
	if waits {
		l.contention.answered = a.attempts.Err == nil
	}
	if err != nil || a.attempts.stuck || l.s.outage.On.Load() {
		a.noteOutage(err)
	}
	if err == nil && g.Status == refused && g.Owner != "" {
		if a.attempts.holder = holderOf(&g, l.s.now()); waits { // for those behind it too
			l.contention.holder = a.attempts.holder
		}
		if g.Position <= 0 {
			a.askBack(&g)
		}
	}
	if c.state == finished { // a forced unlock has ended it meanwhile
		e.takeBack()
	}
	if l.state == lockClosed {
		if err == nil && k.Lines && g.Position > 0 {
			l.needContention().place.Stands(c, l.s.now(), false)
		}
		a.giveUp() // Close has left it to this goroutine
	}
	if a.piggyback != nil {
		a.detachPending()
	}
	return g, err
}

// prepare makes the attempt that is about to be sent, and its claim if need be.
func (a *acquisition) prepare() {
	l, k := a.lock, a.kind
	if c := a.claim; c != nil && (c.state != asking || a.attempts.Failures == 0 && l.s.unheard.Load() != 0 && l.s.deaf() && l.stands(c)) {
		a.abandonClaim()            // it was ended after an attempt, as by a forced unlock; or is to leave the line
		a.attempts.unsubscribed = 0 // then it polls, and begins with short pauses
	}
	if a.claim == nil {
		a.claim = l.newClaim(a)
	}
	c, op := a.claim, &a.op
	*op = Op{Owner: c.ownerID(), N: a.n, Lease: a.lease, Private: c.num != 0}
	op.Wait = a.queued && l.queue.First == &a.node
	op.Next = k.Permits && op.Wait && a.node.Next != nil
	if c.account != nil {
		op.ID, op.ByIDs = c.account.FirstID(k), c.account.ByIDs()
	}
	if k.Fenced {
		if op.Tokens = c.needAccount().Asked(); op.Tokens == 0 || !k.Lines { // the entry of a claim stays the same
			op.Tokens = c.account.Reserving(l.wantTokens(a))
		}
	}
}

// busy reports whether the caller cannot be given the lock now: it subscribes, or awaits an answer. It is woken at
// the end of that.
func (a *acquisition) busy() bool {
	return a.subscribing || a.claim != nil && a.claim.awaits == anAnswer
}

// maxTokens bounds how many fencing tokens one acquisition reserves.
const maxTokens = 256

// wantTokens returns how many fencing tokens an acquisition reserves: one for itself, and one
// for each caller behind it that the claim may be handed over to.
func (l *lock) wantTokens(a *acquisition) int {
	n := 1
	if a.keep > 0 {
		n += keptTokens
	}
	if a.queued && l.s.cfg.HandOverLimit >= 0 {
		for w := a.node.Next; w != nil && n < maxTokens; w = w.Next {
			if w.Of.kind.Fenced {
				n++
			}
		}
	}
	return n
}

// bounded returns a context for what the acquisition sends: it ends with ctx, which is the caller's or
// that of a section around it, with the time that Wait gave, and with the session. queued says that the caller
// stands in the queue: it may be let in meanwhile. It runs code of the caller's context.
func (a *acquisition) bounded(ctx context.Context, queued bool) (bounded context.Context, cancel context.CancelFunc) {
	s := a.lock.s
	switch {
	case ctx.Done() == nil && !a.wait && a.attempts.Failures == 0:
		return s.attemptLimit.At(s.now()), func() {}
	case ctx.Done() == nil && a.deadline == 0:
		return s.life.Closing, func() {}
	case a.deadline != 0:
		bounded, cancel = context.WithTimeout(ctx, a.deadline-s.now())
	default:
		bounded, cancel = context.WithCancel(ctx)
	}
	if !queued { // Close does not find it
		end := cancel
		stop := context.AfterFunc(s.life.Closing, end)
		return bounded, func() { stop(); end() }
	}
	interrupt := cancel
	a.interrupt.Store(&interrupt)
	if s.life.Closing.Err() != nil { // Close has called the interrupts already
		cancel()
	}
	return bounded, cancel
}

// noteOutage notes that Redis has answered an attempt, or, of a Lock that waits, that it does not serve. An error of the
// ACL is reported by itself: no Lock waits for that.
func (a *acquisition) noteOutage(err error) {
	l := a.lock
	if err == nil {
		again := a.attempts.stuck
		l.s.outage.Leave(&a.attempts.stuck)
		l.s.outage.Answered()
		// It has the time to subscribe again from now on; not anew as long as Redis answers this one and not others.
		if since := l.s.unheard.Load(); since != 0 && (again || !l.s.outage.On.Load()) {
			l.s.unheard.CompareAndSwap(since, int64(l.s.now()))
		}
		return
	}
	if l.contention != nil && l.queue.First == &a.node {
		l.contention.next.soon = true // the attempt may have swallowed a wake-up; the next front must know
	}
	switch name := a.prim.Names().Name(); {
	case !a.wait || !errors.Is(err, ErrUnavailable) || l.s.life.Closing.Err() != nil:
	case script.Denied(err):
		l.s.outage.Denied(name, err)
	default:
		l.s.outage.Enter(&a.attempts.stuck, name, err)
	}
}

// forgotten says that Redis may no longer remember an attempt with an unknown outcome: sent
// again, it might count twice.
func (a *acquisition) forgotten() bool {
	return a.attempts.MayHaveRun && a.kind.Unleased && a.lock.s.now() >= a.attempts.Doubted+trustIn(kind.Memory)
}

// stopsTrying says whether a TryLock shall stop after err. It goes on as long as the outcome is
// unknown: asking again is the only way to learn it. If replicas have not acknowledged a grant, the outcome is known.
func (a *acquisition) stopsTrying(err error) bool {
	if errors.As(err, new(*redis.TooFew)) {
		return true
	}
	return script.Classify(err) != script.Unknown || a.lock.s.now() >= a.deadline
}

// whyStopped is the error of a TryLock that stops after err. The lock's mutex must be held; it
// is released meanwhile and held again at the end.
func (a *acquisition) whyStopped(err error) error {
	if !script.IsContext(err) {
		return err
	}
	a.lock.unlock()
	a.undo = (*acquisition).quit
	if err = api.ErrNoAnswer; a.done() { // else rueidis was connecting with the context of another caller
		err = a.ended()
	}
	a.undo = nil
	a.lock.mu.Lock()
	return err
}

// ended says why the waiting ended with the caller's context, or with the time that Wait gave.
// It runs code of the caller's context.
func (a *acquisition) ended() error {
	switch {
	case a.lock.s.TurnsAway(a.ctx):
		return ErrClosed
	case a.ctx.Err() != nil:
		return api.NotAcquired(api.OfContext(a.ctx), a.attempts.Err)
	}
	if !a.wait {
		err := a.attempts.Err
		if err == nil {
			err = api.ErrNoAnswer
		}
		return fmt.Errorf("gave up after %v: %w", a.lock.s.cfg.TryTimeout(), err)
	}
	return api.NotAcquired(nil, a.attempts.Err) // Wait is over
}

// done reports whether the caller's context or the time that Wait gave is over. It runs code
// of the caller's context.
func (a *acquisition) done() bool {
	return a.ctx.Err() != nil || a.deadline != 0 && a.lock.s.now() >= a.deadline || a.lock.s.TurnsAway(a.ctx)
}
