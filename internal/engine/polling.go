package engine

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Backoff says how long to sleep before the n-th further attempt; package rlock documents it.
type Backoff func(n int) time.Duration

// Linear sleeps for d each time, jittered.
func Linear(d time.Duration) Backoff {
	return func(int) time.Duration { return jitter(max(d, minPause)) }
}

// Exponential sleeps for first, doubling to most, jittered.
func Exponential(first, most time.Duration) Backoff {
	first = max(first, minPause)
	return func(n int) time.Duration {
		d := most
		if shift := min(max(n-1, 0), 62); first <= math.MaxInt64>>shift {
			d = min(first<<shift, most)
		}
		return jitter(max(d, minPause))
	}
}

// Limit gives up after that many attempts.
func Limit(b Backoff, attempts int) Backoff {
	return func(n int) time.Duration {
		if n >= attempts {
			return -1
		}
		return b(n)
	}
}

// Retry makes one Lock a series of attempts, without a place in a queue.
func Retry(b Backoff) LockOption {
	return func(o *lockOptions) {
		if b == nil && o.err == nil {
			o.err = fmt.Errorf("%w: Retry(nil); name a Backoff, as Linear(50*time.Millisecond)", ErrArgument)
		}
		o.retry = b
	}
}

// Retries returns the Backoff that the options of one Lock name, nil if none.
func Retries(opts []LockOption) Backoff {
	o, _ := collect(opts)
	return o.retry
}

// next returns how long to sleep before the n-th further attempt, and false to give up. It runs
// the caller's code.
func (b Backoff) next(n int) (d time.Duration, ok bool) {
	d = b(n)
	return max(d, minPause), d >= 0
}

// pollAgain says when the caller in front asks again, in a session that polls: when its
// Backoff says so, or when Redis said that it is worth while, in so many milliseconds (-1: Redis does
// not know). It reports false when the Backoff gives up. The lock's mutex must be held; it is
// released meanwhile and held again at the end.
func (a *acquisition) pollAgain(ms int64) bool {
	l := a.lock
	a.tries.refused++
	l.unlock()
	d, ok := l.s.cfg.Polling.next(a.tries.refused)
	l.mu.Lock()
	if ms >= 0 && ms < d.Milliseconds() {
		d = time.Duration(ms+1) * time.Millisecond // PTTL is rounded down
	}
	if ok && l.queue.Front() == a {
		l.waiting().lookAt = l.s.now() + d
	}
	return ok
}

// try is TryLock: one attempt, and the further ones of [Retry]. The lock's mutex must be held, and
// is held at the end.
func (a *acquisition) try() (g grant, err error) {
	_, inRedis := a.prim.(Queuer)
	until := never
	if a.opts.hasWait && a.opts.wait < longest {
		until = a.start + a.opts.wait
	}
	for n := 1; ; n++ {
		others := a.lock.queue.Front() != nil
		a.behind = inRedis && others
		if others && (a.prim.Kind().Permits || inRedis && a.named == "") {
			// A large request could be starved by small ones; and a fair queue's waiters, some of
			// whom may not be in Redis yet, would be overtaken.
			err = ErrNotAcquired
		} else {
			g, err = a.tryOnce()
		}
		if err != ErrNotAcquired || a.opts.retry == nil {
			return g, err
		}
		if err = a.sleepBefore(n, until); err != nil {
			return g, err
		}
	}
}

// sleepBefore sleeps before the n-th further attempt of a TryLock, or says why there is none.
// The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) sleepBefore(n int, until time.Duration) error {
	s := a.lock.s
	a.lock.unlock()
	defer a.lock.mu.Lock()
	d, ok := a.opts.retry.next(n)
	if !ok || d >= until-s.now() {
		return ErrNotAcquired
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	defer context.AfterFunc(s.life.closing, cancel)()
	_ = sleepFor(ctx, d)
	a.deadline = s.now() + s.tryTimeout()
	if a.done() {
		return a.ended()
	}
	return nil
}

// sleepFor sleeps, or returns the error of ctx when that ends first.
func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
