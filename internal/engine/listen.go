package engine

import (
	"context"
	"time"

	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/waiting"
	"relock/locktrace"
	"relock/pubsub"
)

// The lock's channel: who is in front of the queue listens there, where others than the sessions of the line may have
// the lock, until no caller waits.

// listensFirst reports whether the front subscribes to the lock's channel before it asks: clients outside
// the line may have the lock, and these publish only there. So does a session that may not send messages to
// others, and then probably each session of the same Redis user.
func (l *lock) listensFirst() bool {
	ct := l.contention
	first := ct.place.First > 0 && l.s.now() >= ct.place.First+waiting.FirstPatience
	return ct.listener == nil && (first || l.s.redis.Mute && ct.place.Claim != nil)
}

// listen subscribes, once for the lock. Where that fails the front polls: it pauses
// here, and subscribes again before its next attempt. The lock's mutex must be held; it is released
// meanwhile and held again at the end.
func (a *acquisition) listen() {
	l := a.lock
	ct := l.needContention()
	if ct.listener != nil && l.s.unheard.Load() != 0 && l.s.deaf() && !l.s.redis.Hears(a.prim.Channel()) {
		l.endSubscription() // it was lost, as the session's own: the front polls until there is another one
	}
	if l.holder != nil || ct.listener != nil && !ct.mustHearAll {
		return
	}
	everywhere := ct.mustHearAll
	a.subscribing = true // nothing is handed to it meanwhile: it would not notice
	l.unlock()
	a.undo = (*acquisition).quit
	ctx, cancel := a.bounded(a.ctx, true) // the lock may be given to it meanwhile
	// A server that does not answer must not keep the front from asking.
	ctx, stop := context.WithTimeout(ctx, l.s.cfg.PollFloor)
	sub, err := l.s.redis.Listen(ctx, a.prim.Channel(), everywhere)
	stop()
	cancel()
	if err != nil && !a.done() {
		name := a.prim.Names().Name()
		l.s.log.Debug("relock: no subscription, polling instead", "name", api.Shown(name), "error", err)
		if t := l.s.trace; t != nil {
			l.s.notes.Add(func() { t.Hooks.Subscription(locktrace.Subscription{State: locktrace.SubscriptionPolling, Err: err}) })
		}
		a.pauseUnsubscribed()
	}
	a.undo = nil
	l.mu.Lock()
	a.subscribing = false
	switch {
	case err != nil:
		ct.next.soon, ct.place.First = true, l.s.now()
		return
	case !a.queued: // the lock was given to it meanwhile, by a message
		l.unlisten(sub)
		return
	}
	a.attempts.unsubscribed = 0
	if ct.listener != nil {
		l.later(ct.listener.Close)
	}
	ct.listener, ct.mustHearAll = sub, false
	// What was published before the confirmation is unknown; it does not matter if a claim of
	// this session has got the lock meanwhile.
	ct.next.soon = ct.next.soon || l.holder == nil
}

// pauseUnsubscribed pauses after a subscription that failed. A session that cannot subscribe polls: the attempt before has
// booked a round at the end of this pause. The pause after the next attempt is chosen here, so that it can be booked too. No mutex may be held.
func (a *acquisition) pauseUnsubscribed() {
	s := a.lock.s
	d := clock.Doubling(a.attempts.unsubscribed, s.cfg.PollFloor)
	a.attempts.unsubscribed++
	if s.deaf() {
		booked := a.attempts.pause
		a.attempts.pause, a.attempts.trip = d, s.now()-a.attempts.sent
		if booked > 0 {
			d = booked
		}
	}
	a.sleep(d, nil)
}

// hearRelease takes a message of the lock's channel.
func (l *lock) hearRelease() {
	ct := l.needContention()
	// No release can be meant while a claim of this session holds the lock: then the message
	// is an echo.
	now := l.s.now()
	if l.holder != nil || !ct.turns.Heard(now) {
		return
	}
	// A release of this library that leaves the lock to readers for a moment has said before when its first writer is
	// to come.
	if front := l.queue.First; front != nil && front.Of.kind.Writes && ct.next.at > now && ct.next.at <= now+readersFirst {
		return
	}
	ct.next.soon = true
	l.wakeFront()
}

// readersFirst is longer than the time for which such a release leaves the lock to readers that are near. Where some are
// far away the writer asks once in vain.
const readersFirst = 7 * time.Millisecond

// drain discards a message that is already there: the command that the caller is going to send will see the
// release that it announces.
func (ct *contention) drain() {
	if ct.listener == nil {
		return
	}
	select {
	case <-ct.listener.C():
	default:
	}
}

// hears reports whether a script counts the session among the listeners of the lock's channel.
func (l *lock) hears(p Primitive) bool {
	return l.contention != nil && l.contention.listener != nil || l.s.lingerUntil.Load() > int64(l.s.now()) && l.s.redis.Hears(p.Channel())
}

// endSubscription ends the subscription, which there must be: the last waiter has gone, or the line informs those that
// are left.
func (l *lock) endSubscription() {
	ct := l.contention
	l.unlisten(ct.listener)
	ct.listener, ct.everywhere = nil, false
}

// unlisten ends a subscription. The connection stays subscribed for a while, waiting.Linger at most, in case another
// caller comes.
func (l *lock) unlisten(sub *pubsub.Listener) {
	l.s.lingerUntil.Store(int64(l.s.now() + waiting.Linger))
	l.later(sub.Close)
}
