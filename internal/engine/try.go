package engine

import (
	"context"
	"time"

	"relock/internal/api"
	"relock/internal/clock"
)

// try is TryLock: it asks once, or as long as the outcome is not known. The lock's mutex must be held; it
// is released meanwhile and held again at the end.
func (a *acquisition) try() (answer, error) {
	if a.lock.queue.First != nil && (a.kind.Permits && a.kind.Lines || a.kind.Fair && a.named == "") {
		// A large request could be starved by small ones; and a fair queue's waiters, some of
		// whom may not be in Redis yet, would be overtaken. To pass a latch takes nothing from others.
		return answer{}, ErrNotAcquired
	}
	for {
		if a.lock.hasAsync {
			if err := a.awaitSent(); err != nil {
				return answer{}, err
			}
		}
		if a.lock.state != lockOpen {
			a.lock.returnPending(a.piggyback)
			return answer{}, ErrClosed
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

// sleepBeforeRetry sleeps after an attempt of [api.Retry] that was refused, and returns errAgain, or why there is
// no further attempt. It returns any other err as it is. It runs code of the caller's: no mutex may
// be held.
func (a *acquisition) sleepBeforeRetry(err error) error {
	if err != ErrNotAcquired || a.opts.Retry == nil {
		return err
	}
	s, until := a.lock.s, never
	if a.opts.Bounded && a.opts.Wait < api.Longest {
		until = a.start + a.opts.Wait
	}
	d, ok := a.nextRetry()
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
	_ = clock.Sleep(ctx, d)
	a.deadline = s.now() + s.cfg.TryTimeout()
	if a.done() {
		return a.ended()
	}
	return errAgain
}

// nextRetry is nextPause for [api.Retry]. Its Backoff may panic, or end its goroutine: the hooks are told of the
// end of the call here then.
func (a *acquisition) nextRetry() (d time.Duration, ok bool) {
	returned := false
	defer func() {
		if t := a.lock.s.trace; !returned && t != nil {
			a.traceEnd(t, nil, ErrNotAcquired)
		}
	}()
	d, ok = a.nextPause(a.opts.Retry)
	returned = true
	return d, ok
}
