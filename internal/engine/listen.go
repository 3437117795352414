package engine

import (
	"context"
	"time"

	"relock/internal/clock"
	"relock/internal/waiting"
	"relock/locktrace"
	"relock/pubsub"
)

// The lock's channel: who is in front of the queue listens there, where others than the sessions of the line may have
// the lock, until no caller waits.

// listensFirst reports whether the front listens to the lock's channel before it asks: others than the
// sessions of the line may have the lock, and these only publish there. So does this session if it may not
// tell others anything, and those of the same user probably do.
func (l *lock) listensFirst() bool {
	b := l.lobby
	first := b.place.First > 0 && l.s.now() >= b.place.First+waiting.FirstPatience
	return b.listener == nil && (first || l.s.redis.Mute && b.place.Claim != nil)
}

// listen subscribes, once for the lock. Where that fails the front polls: then the pause lies
// here, and the next round tries to subscribe again. The lock's mutex must be held; it is released
// meanwhile and held again at the end.
func (a *acquisition) listen() {
	l := a.lock
	b := l.needLobby()
	if l.holder != nil || b.listener != nil && !b.mustHearAll {
		return
	}
	everywhere := b.mustHearAll
	a.subscribing = true // nothing is handed to it meanwhile: it would not notice
	l.unlock()
	ctx, cancel := a.bounded(a.ctx, true) // the lock may be given to it meanwhile
	// A server that does not answer must not keep the front from looking.
	ctx, stop := context.WithTimeout(ctx, l.s.cfg.PollFloor)
	subscribe := l.s.redis.Listen
	if everywhere {
		subscribe = l.s.redis.ListenEverywhere
	}
	sub, err := subscribe(ctx, a.prim.Channel())
	stop()
	cancel()
	if err != nil && !a.done() {
		name := a.prim.Names().Name()
		l.s.notify(func() {
			l.s.cfg.Logger.Debug("relock: no subscription, polling instead", "name", name, "error", err)
			l.s.trace.Subscription(locktrace.Subscription{State: locktrace.SubscriptionPolling, Err: err})
		})
		a.pauseUnsubscribed()
	}
	l.mu.Lock()
	a.subscribing = false
	switch {
	case err != nil:
		b.look.Soon, b.place.First = true, l.s.now()
		return
	case !a.queued: // the lock was given to it meanwhile, by a message
		l.unlisten(sub)
		return
	}
	a.tries.unsubscribed = 0
	if b.listener != nil {
		l.later(b.listener.Close)
	}
	b.listener, b.mustHearAll = sub, false
	// What was published before the confirmation is unknown; it does not matter if a claim of
	// this session has got the lock meanwhile.
	b.look.Soon = b.look.Soon || l.holder == nil
}

// pauseUnsubscribed pauses after a subscription that failed. A session that is deaf polls: the attempt before has
// booked a round at the end of this pause, so how long the next one is must be known by then. No mutex may be held.
func (a *acquisition) pauseUnsubscribed() {
	s := a.lock.s
	d := clock.Doubling(a.tries.unsubscribed, s.cfg.PollFloor)
	a.tries.unsubscribed++
	if s.redis.Inbox.Deaf() {
		told := a.tries.pause
		a.tries.pause, a.tries.trip = d, s.now()-a.tries.sent
		if told > 0 {
			d = told
		}
	}
	a.sleep(d, nil)
}

// hearRelease takes a message of the lock's channel.
func (l *lock) hearRelease() {
	b := l.needLobby()
	// No release can be meant while a claim of this session holds the lock: then the message
	// is an echo.
	now := l.s.now()
	if l.holder != nil || !b.turns.Heard(now) {
		return
	}
	// A release of this library that leaves the lock to readers for a moment has said before when its first writer is
	// to come.
	if a := l.queue.Front(); a != nil && a.kind.Writes && b.look.At > now && b.look.At <= now+readersFirst {
		return
	}
	b.look.Soon = true
	l.callUp()
}

// readersFirst is longer than the millisecond for which such a release leaves the lock to readers.
const readersFirst = 2 * time.Millisecond

// drain throws away a message that is already there: it was published before what the caller is
// going to do, which will see what the message speaks of.
func (b *lobby) drain() {
	if b.listener == nil {
		return
	}
	select {
	case <-b.listener.C():
	default:
	}
}

// hears reports whether a script counts the session among the listeners of the lock's channel.
func (l *lock) hears(p Primitive) bool {
	return l.lobby != nil && l.lobby.listener != nil || l.s.deserted.Load() > int64(l.s.now()) && l.s.redis.Hears(p.Channel())
}

// frontLines reports whether the front of the queue, if there is one, stands in a line: else it listens as those do
// who stand in none.
func (l *lock) frontLines() bool {
	a := l.queue.Front()
	return a == nil || a.kind.Lines
}

// desert ends the subscription, if there is one: the last waiter has gone.
func (l *lock) desert() {
	if b := l.lobby; b.listener != nil {
		l.unlisten(b.listener)
		b.listener, b.everywhere = nil, false
	}
}

// unlisten ends a subscription, which lingers for a while.
func (l *lock) unlisten(sub *pubsub.Listener) {
	l.s.deserted.Store(int64(l.s.now() + waiting.Linger))
	l.later(sub.Close)
}
