package engine

import (
	"fmt"
	"time"

	"relock/locktrace"
)

// Close ends the session; package rlock documents it.
func (s *Session) Close() error {
	if s == nil {
		return fmt.Errorf("close: %w: the session is nil", ErrArgument)
	}
	if !s.made() {
		return fmt.Errorf("close: %w", errZeroSession)
	}
	s.life.once.Do(func() { s.life.err = s.close() })
	return s.life.err
}

func (s *Session) close() error {
	s.cleanup.Forgive()
	s.life.close()
	for _, l := range s.registry.snapshot(true) {
		l.close(false)
	}
	timer := time.NewTimer(s.cfg.ReleaseTimeout)
	defer timer.Stop()
	s.await(s.registry.idled(), timer)
	for _, l := range s.registry.snapshot(true) {
		l.close(true)
	}
	s.await(s.cleanup.Idle(), timer)

	s.dropRecord()
	s.life.stop()
	s.cleanup.Stop()
	s.farewell()
	sessionIDs.Delete(s.id)
	s.life.releases.Stop()
	s.life.attempts.Stop()
	if s.trace != nil {
		timer.Reset(farewellTime)
		s.await(s.notes.Told(), timer)
	}
	if n := s.cleanup.Unconfirmed(); n > 0 {
		return fmt.Errorf("close: %w: %d releases were not confirmed; those locks end with their leases", ErrUnavailable, n)
	}
	return nil
}

// farewellTime bounds how long Close waits for connections to end, in order and then by force.
const farewellTime = 250 * time.Millisecond

// farewell ends the subscriptions, the client if it is the session's, and every goroutine. A
// server that is silent gets farewellTime; then the session's connections are severed. In a
// client of the caller's, and in the caller's DialCtxFn, a goroutine may be stuck that nobody
// can end: it is left behind, and ends when the client or that function gives up.
func (s *Session) farewell() {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = s.hub.Close()
		s.run.Close()
		if s.life.ownsClient {
			s.client.Close()
		}
		s.life.background.Wait()
	}()
	timer := time.NewTimer(farewellTime)
	defer timer.Stop()
	select {
	case <-gone:
		s.conn.Sever() // frees its context; nothing is open any more
		return
	case <-timer.C:
	}
	s.conn.Sever()
	timer.Reset(farewellTime)
	s.await(gone, timer)
}

// await waits until something is idle, or the time is over. A timer that has fired stays so.
func (s *Session) await(idle <-chan struct{}, timer *time.Timer) {
	select {
	case <-idle:
	case <-timer.C:
		timer.Reset(0)
	}
}

// close ends all that the session has to do with the lock: nobody enters any more, waiters
// leave, sections end, and what may stand in Redis is released. A claim that was left stays.
//
// The attempt of a claim that asks may not have been written yet: its goroutine has looked at its
// context, and was taken off its core. A release that is sent now could come before it, and the
// lock would stand for a lease. So such a claim is left to the goroutine that asks, unless that has
// not come back in time: last says so.
func (l *lock) close(last bool) {
	l.mu.Lock()
	if l.state == lockDead {
		l.unlock()
		return
	}
	l.state = lockClosed
	for a := l.queue.Front(); a != nil; a = a.node.Next() {
		wakeUp(a.wake)
		l.interrupt(a)
		if !a.asking {
			a.giveUp() // was refused, as a rule: then there is nothing to release
		}
	}
	for c := l.claims; c != nil; {
		next := c.next
		switch {
		case c.state == asking && !last && c.flight == flying:
		case c.state == asking:
			c.end(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		case c.state == held:
			for x := c.sections; x != nil; x = c.sections {
				x.endTraces(locktrace.HoldClosed)
				if x.close(closed) {
					l.later(x.cancel)
				}
			}
			c.end(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
		}
		c = next
	}
	l.unlock()
	l.tryRetire()
}

// interrupt ends what a waiter is sending. The lock's mutex must be held.
func (l *lock) interrupt(a *acquisition) {
	if cancel := a.interrupt.Load(); cancel != nil {
		l.later(*cancel)
	}
}
