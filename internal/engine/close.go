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
	ends := newEndings()
	defer ends.rethrow()
	for _, l := range s.locks.All() {
		l.close(ends)
	}
	s.releaseLost()
	until := time.Now().Add(s.cfg.ReleaseTimeout)
	life.Await(s.life.Idle(), time.Until(until))
	life.Await(ends.Idle(), time.Until(until))
	for _, l := range s.locks.All() {
		l.close(nil)
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
	if n := s.cleanup.Unconfirmed() + ends.Count(); n > 0 {
		return fmt.Errorf("close: %w: %d releases were not confirmed; those locks end with their leases", ErrUnavailable, n)
	}
	return nil
}

// endings count the claims whose sections Close has ended and whose contexts are being cancelled: code of callers' contexts runs
// then, which may block, panic, or close the session.
type endings struct {
	life.Group
	panicked chan any // of size 1
}

func newEndings() *endings { return &endings{panicked: make(chan any, 1)} }

// of ends a claim behind the contexts of its sections, in the background: none of them keeps Close from other claims, nor
// another caller of this one from its end.
func (e *endings) of(c *claim, sections []*section) {
	l := c.lock
	c.needAccount().Cancel(1)
	e.Add(1)
	l.s.life.Background.Go(func() {
		defer e.Add(-1)
		var all life.Group
		for _, x := range sections {
			x.cancel(func(end func()) {
				all.Go(func() {
					defer func() { e.caught(recover()) }()
					end()
				})
			})
		}
		all.Wait()
		l.mu.Lock()
		c.account.Cancel(-1)
		if c.state == held && !c.busyByName() {
			c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		}
		l.unlock()
	})
}

// interrupt ends what a waiter is sending, in the background: it cancels a context that hangs on the caller's. The lock's
// mutex must be held.
func (e *endings) interrupt(a *acquisition) {
	if cancel := a.interrupt.Load(); cancel != nil {
		a.lock.s.life.Background.Go(func() {
			defer func() { e.caught(recover()) }()
			(*cancel)()
		})
	}
}

// caught keeps the panic of a context, if there was one.
func (e *endings) caught(p any) {
	if p == nil {
		return
	}
	select {
	case e.panicked <- p:
	default: // one is enough
	}
}

// rethrow has the caller of Close see the panic of a context.
func (e *endings) rethrow() {
	select {
	case p := <-e.panicked:
		panic(p)
	default:
	}
}

// settleFor is for how long Close waits for a slot that moves, to take what it has left in lines out of them.
const settleFor = time.Second

// close ends all that the session has to do with the lock: no caller enters any more, waiters
// leave, sections end, and what may stand in Redis is released. A claim that was left stays.
//
// The attempt of a claim that asks may not have been written yet: its goroutine has checked its
// context, and was then descheduled. A release that is sent now could come before it, and the
// lock would stand for a lease. So such a claim is left to the goroutine that asks, and one of a named owner to the
// command that is under way. What has not come back in time is ended by a second call, with a nil ends.
//
// A claim whose sections end here is released when their contexts have been cancelled. If that takes too long it is left
// to its lease: its callers may rely on it yet. Close overtakes an Unlock that is cancelling those of its own, since it may
// be called there.
func (l *lock) close(ends *endings) {
	last := ends == nil
	l.mu.Lock()
	if l.state != lockDead { // else it is idle
		l.state = lockClosed
	}
	for a := range l.queue.All() {
		a.wake.Up()
		if !last {
			ends.interrupt(a)
		}
		if !a.busy() {
			a.giveUp() // was refused, as a rule: then there is nothing to release
		}
	}
	for c, next := l.claims, (*claim)(nil); c != nil; c = next {
		next = c.next
		switch {
		case c.state == asking && !last && c.awaits == anAnswer:
		case c.state == held && c.sections == nil && last && c.account.Cancels():
		case c.state == asking, c.state == held:
			if sections := c.closeSections(); !last && (sections != nil || c.state == held && c.busyByName()) {
				ends.of(c, sections)
				continue
			}
			c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		}
	}
	l.unlock()
}

// closeSections ends the sections of a claim, and returns those that have contexts to be cancelled.
func (c *claim) closeSections() (sections []*section) {
	for x := c.sections; x != nil; x = c.sections {
		x.endTraces(locktrace.HoldClosed)
		if x.close(closed) {
			sections = append(sections, x)
		}
	}
	return sections
}
