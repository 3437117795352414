package engine

import (
	"context"
	"errors"
	"time"

	"relock/internal/backoff"
	"relock/internal/lockopt"
)

// try is TryLock: one attempt, and the further ones of [lockopt.Retry]. The lock's mutex must be
// held; it is released meanwhile and held again at the end.
func (a *acquisition) try() (g grant, err error) {
	for {
		others := a.lock.queue.First != nil
		if others && (a.kind.Permits && !a.kind.Passes || a.kind.Queues && a.named == "") {
			// A large request could be starved by small ones; and a fair queue's waiters, some of
			// whom may not be in Redis yet, would be overtaken.
			err = ErrNotAcquired
		} else {
			g, err = a.tryOnce()
		}
		if err != ErrNotAcquired || a.opts.Retry == nil {
			return g, err
		}
		if err = a.sleepBefore(); err != nil {
			return g, err
		}
		if a.named != "" {
			return g, errRetry
		}
	}
}

// errRetry says that a TryLock has slept before a further attempt, and that another caller of its
// named owner may have come in or have begun to ask meanwhile. While it sleeps it has no claim: those
// would wait for that until it wakes up.
var errRetry = errors.New("rlock: retry")

// sleepBefore sleeps before a further attempt of a TryLock, or says why there is none.
// The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) sleepBefore() error {
	s, until := a.lock.s, never
	if a.opts.Bounded && a.opts.Wait < lockopt.Longest {
		until = a.start + a.opts.Wait
	}
	if a.named != "" {
		a.disown()
	}
	a.tries.refused++
	a.lock.unlock()
	defer a.lock.mu.Lock()
	d, ok := a.opts.Retry.Next(a.tries.refused)
	if !ok || d >= until-s.now() {
		return ErrNotAcquired
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	end := s.life.Drains
	if s.inSection(a.ctx) {
		end = s.life.Closing
	}
	defer context.AfterFunc(end, cancel)()
	_ = backoff.Sleep(ctx, d)
	a.deadline = s.now() + s.tryTimeout()
	if a.done() {
		return a.ended()
	}
	return nil
}

// pollAgain says when the caller in front asks again, in a session that polls: when its
// Backoff says so, or when Redis said that it is worth while, in so many milliseconds (-1: Redis does
// not know). It reports false when the Backoff gives up. The lock's mutex must be held; it is
// released meanwhile and held again at the end.
func (a *acquisition) pollAgain(ms int64) bool {
	l := a.lock
	a.tries.refused++
	l.unlock()
	d, ok := l.s.cfg.Polling.Next(a.tries.refused)
	l.mu.Lock()
	if ms >= 0 && ms < d.Milliseconds() {
		d = time.Duration(ms+1) * time.Millisecond // PTTL is rounded down
	}
	if ok && l.queue.First == &a.node {
		l.needLobby().lookAt = l.s.now() + d
	}
	return ok
}
