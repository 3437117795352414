package engine

import (
	"context"

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
			return g, errAgain
		}
	}
}

// tryOnce asks once, or as long as the outcome is not known. The lock's mutex must be held; it
// is released meanwhile and held again at the end.
func (a *acquisition) tryOnce() (grant, error) {
	for {
		if a.lock.state != lockOpen {
			return grant{}, ErrClosed
		}
		g, err := a.ask()
		switch {
		case a.claim.state != asking: // it was ended meanwhile: the next attempt is another claim's
			continue
		case err == nil && g.Status == granted:
			return g, nil
		case err == nil && g.Status == forGood:
			return g, g.never(a.prim)
		case err == nil:
			return g, ErrNotAcquired
		case a.stopsTrying(err):
			return g, a.whyStopped(err)
		case a.failed(&err):
			return g, err
		}
	}
}

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
	a.deadline = s.now() + s.cfg.TryTimeout()
	if a.done() {
		return a.ended()
	}
	return nil
}
