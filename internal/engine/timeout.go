package engine

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// answerTime is how long a caller that does not want to wait waits for an answer of Redis: long
// for an answer and short for a caller.
func (s *Session) answerTime() time.Duration { return min(time.Second, s.cfg.ReleaseTimeout) }

// tryTimeout bounds a TryLock: how long it waits for Redis, and for replicas.
func (s *Session) tryTimeout() time.Duration {
	if s.cfg.Replicas > 0 {
		return s.answerTime() + s.cfg.ReplicaTimeout
	}
	return s.answerTime()
}

// TryTimeout returns how long a TryLock of the handle waits for Redis at most.
func (h *Handle) TryTimeout() time.Duration { return h.names.s.tryTimeout() }

// timeouts has contexts that end after a time: what begins within an eighth of that time
// shares one, which ends for it up to an eighth earlier. A timer for each call would cost more
// than all else that the client does for it.
type timeouts struct {
	parent context.Context
	each   time.Duration
	last   atomic.Pointer[timeout]
}

type timeout struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Duration // new calls get another
}

// at returns the context of a call that begins at a time.
func (t *timeouts) at(now time.Duration) context.Context {
	for {
		old := t.last.Load()
		if old != nil && now < old.until {
			return old.ctx
		}
		o := &timeout{until: now + t.each/8}
		o.ctx, o.cancel = context.WithTimeout(t.parent, t.each)
		if t.last.CompareAndSwap(old, o) {
			return o.ctx
		}
		o.cancel()
	}
}

// stop ends the timer of the last one.
func (t *timeouts) stop() {
	if o := t.last.Load(); o != nil {
		o.cancel()
	}
}

// releaseContext returns a context that ends when a release that begins now has taken too long.
func (s *Session) releaseContext(now time.Duration) context.Context { return s.life.releases.at(now) }

// jitter returns a time between half of d and d, so that many that failed together do not come
// back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)/2+1))
}

// pause sleeps before the n-th retry: 10 ms, doubling to half a second, jittered.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(jitter(min(10*time.Millisecond<<min(n, 10), 500*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nextLook is when to look again if Redis said that it is worth while in so many milliseconds
// (-1: it does not know).
func (s *Session) nextLook(ms int64) time.Duration {
	// Up to a tenth less than the floor, so that the waiters of many sessions do not look
	// all at once for ever.
	floor := s.cfg.PollFloor
	sleep := floor - time.Duration(rand.Int64N(int64(floor)/10+1))
	if ms >= 0 && ms < sleep.Milliseconds() {
		// PTTL is rounded down by up to a millisecond.
		sleep = time.Duration(ms+1) * time.Millisecond
	}
	return s.now() + max(sleep, minPause)
}

// minPause is the least time between two looks that nobody asked for. PTTL counts whole
// milliseconds, so a shorter one would see the same.
const minPause = time.Millisecond
