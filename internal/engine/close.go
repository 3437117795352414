package engine

import (
	"fmt"
	"time"

	"relock/internal/life"
	"relock/internal/redis"
	"relock/locktrace"
)

// Close ends the session; package rlock documents it.
func (s *Session) Close() error {
	if err := s.usable(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return s.life.Close(s.close)
}

func (s *Session) close() error {
	s.cleanup.Forgive()
	s.life.Refuse()
	for _, l := range s.locks.All() {
		l.close(false)
	}
	s.endLost()
	until := time.Now().Add(s.cfg.ReleaseTimeout)
	life.Await(s.life.Idle(), time.Until(until))
	for _, l := range s.locks.All() {
		l.close(true)
	}
	life.Await(s.cleanup.Idle(), max(time.Until(until), redis.Farewell)) // also for what was left to the end
	life.Await(s.cleanup.Settled(), min(time.Until(until), settleFor))

	if left := time.Until(until); left > 0 && s.cleanup.Unconfirmed() == 0 { // else Redis does not answer, as a rule
		s.redis.Record.Drop(min(left, redis.Farewell))
	}
	s.life.Stop()
	// In a client of the caller's, and in the caller's DialCtxFn, a goroutine may be stuck that
	// nothing can end: it is left behind, and ends when the client or that function gives up.
	s.life.Farewell(redis.Farewell, s.redis.Close, s.redis.Conn.Sever)
	s.unreserve()
	s.releaseLimit.Stop()
	s.attemptLimit.Stop()
	if s.trace != nil {
		life.Await(s.notes.Told(), redis.Farewell)
	}
	if n := s.cleanup.Unconfirmed(); n > 0 {
		return fmt.Errorf("close: %w: %d releases were not confirmed; those locks end with their leases", ErrUnavailable, n)
	}
	return nil
}

// settleFor is for how long Close waits for a slot that moves, to take what it has left in lines out of them.
const settleFor = time.Second

// close ends all that the session has to do with the lock: no caller enters any more, waiters
// leave, sections end, and what may stand in Redis is released. A claim that was left stays.
//
// The attempt of a claim that asks may not have been written yet: its goroutine has checked its
// context, and was then descheduled. A release that is sent now could come before it, and the
// lock would stand for a lease. So such a claim is left to the goroutine that asks, unless that has
// not come back in time: last says so. A claim whose sections end here is released when their contexts have
// been cancelled; Close overtakes an Unlock that is cancelling those of its own, since it may be called there.
func (l *lock) close(last bool) {
	l.mu.Lock()
	if l.state != lockDead { // else it is idle
		l.state = lockClosed
	}
	for a := range l.queue.All() {
		a.wake.Up()
		l.interrupt(a)
		if !a.busy() {
			a.giveUp() // was refused, as a rule: then there is nothing to release
		}
	}
	for c, next := l.claims, (*claim)(nil); c != nil; c = next {
		next = c.next
		switch {
		case c.state == asking && !last && c.awaits == anAnswer:
		case c.state == asking, c.state == held && c.sections == nil:
			c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		case c.state == held:
			for x := c.sections; x != nil; x = c.sections {
				x.endTraces(locktrace.HoldClosed)
				x.end(closed)
			}
			l.later(func() {
				l.mu.Lock()
				if c.state == held {
					c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
				}
				l.unlock()
			})
		}
	}
	l.unlock()
}

// interrupt ends what a waiter is sending. The lock's mutex must be held.
func (l *lock) interrupt(a *acquisition) {
	if cancel := a.interrupt.Load(); cancel != nil {
		l.later(*cancel)
	}
}
