package engine

import (
	"sync"
	"time"
)

// watch is the session's watchdog: one goroutine that ends what can no longer be trusted, has
// the rest renewed, and keeps the waiters in Redis. It never waits for Redis itself, nor runs
// code of the caller's, so that no claim is trusted too long because either hangs.
func (s *Session) watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := s.now()
		var ask []*claim
		for _, c := range s.schedule.take(now) {
			l := c.lock
			l.mu.Lock()
			c.expire(now)
			if c.state == held && c.renewAt <= now {
				c.renewAt = never // until the answer is here
				ask = append(ask, c)
			}
			c.reschedule()
			l.unlockBehind()
		}
		silent, next := s.fair.takeDue(now, s.heartbeatEvery())
		if len(ask) > 0 {
			s.life.background.Go(func() { s.renew(ask) })
		}
		if len(silent) > 0 {
			s.life.background.Go(func() { s.heartbeat(silent) })
		}
		if due := time.Duration(s.record.due.Load()); due <= now {
			s.record.due.Store(int64(never))
			s.life.background.Go(s.keepRecord)
		}
		if s.deadlocks.next() <= now {
			s.seekDue(now)
		}
		next = min(next, time.Duration(s.record.due.Load()), s.deadlocks.next())
		timer.Reset(s.schedule.arm(now, next) - s.now())
		select {
		case <-timer.C:
		case <-s.schedule.kick:
		case <-s.life.ctx.Done():
			return
		}
	}
}

// renewAfter has Redis asked about the claim again after having been asked at a time: a third
// of the lease later, unless it is to be asked sooner. Holds with a fixed lease are not
// prolonged, but asked for, so that a lock that was deleted under them is noticed too; only
// those whose lease another process may cut off are renewed up to their end. Times are rounded to a common grid, so that locks taken one by one are renewed together.
func (c *claim) renewAfter(asked time.Duration) {
	lease := c.uncut(c.lock.s.cfg.Lease)
	if !c.renewed() {
		worth := false
		for x := c.sections; x != nil; x = x.next {
			for _, h := range x.fixedHolds() {
				if d := h.until - h.began; d >= minChecked || d > lease {
					lease, worth = min(lease, d), true
				}
			}
		}
		if !worth {
			return
		}
	}
	at, grid := asked+lease/3, lease/30
	c.renewAt = min(c.renewAt, max(at-at%grid, asked+lease/6))
}

// minChecked is the shortest fixed lease that is worth a look in the middle of it.
const minChecked = 100 * time.Millisecond

// renewed reports whether the claim has a hold that the watchdog renews.
func (c *claim) renewed() bool {
	for x := c.sections; x != nil; x = x.next {
		if x.auto > 0 || len(x.fixedHolds()) > 0 && !c.bound && c.prim.Kind().Shares {
			return true
		}
	}
	return c.paused()
}

// recheck has Redis asked about every claim at once: the session was not listening for a
// moment, so it may have missed that one was ended.
func (s *Session) recheck() {
	s.conn.Doubt()
	for _, l := range s.registry.snapshot(false) {
		l.mu.Lock()
		for c := l.claims; c != nil; c = c.next {
			c.askSoon(s.now())
		}
		l.unlockBehind()
	}
	s.fair.hurry(s.now())
	s.schedule.wakeAt(s.now())
}

// askSoon has Redis asked about a held claim at once; a claim that is asking is asked about as
// soon as it is granted, since the session's count of doubts has changed.
func (c *claim) askSoon(now time.Duration) {
	if c.state == held {
		c.renewAt = min(c.renewAt, now)
		c.reschedule()
	}
}

// The schedule says when the watchdog must look at which claim. Its mutex comes after those of
// the locks; the watchdog takes what is due off it, drops the mutex, and then visits the locks.
type schedule struct {
	mu    sync.Mutex
	due   []visit       // a binary heap: the next one is in front
	armed time.Duration // when the watchdog wakes up; never is what it begins with
	asked time.Duration // when else it must, by what was asked since it was armed last
	kick  chan struct{} // capacity 1: wakes the watchdog
}

// A visit is when the watchdog must look at a claim.
type visit struct {
	at time.Duration
	c  *claim
}

// set has c looked at when it is due.
func (s *schedule) set(c *claim, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := int(c.index)
	if i < 0 {
		i = len(s.due)
		s.due = append(s.due, visit{})
	}
	s.put(visit{at, c}, i)
	if at < s.armed {
		s.wake(at)
	}
}

// put lets v stand at index i of the heap, or where it belongs from there: nearer to the front
// than later visits, behind earlier ones. The mutex must be held.
func (s *schedule) put(v visit, i int) {
	d := s.due
	for up := (i - 1) / 2; i > 0 && v.at < d[up].at; up = (i - 1) / 2 {
		d[i] = d[up]
		d[i].c.index = int32(i)
		i = up
	}
	for {
		down := 2*i + 1
		if down+1 < len(d) && d[down+1].at < d[down].at {
			down++
		}
		if down >= len(d) || v.at <= d[down].at {
			break
		}
		d[i] = d[down]
		d[i].c.index = int32(i)
		i = down
	}
	d[i], v.c.index = v, int32(i)
}

// wakeAt has the watchdog look around at a time.
func (s *schedule) wakeAt(at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = min(s.asked, at) // it may be about to be armed for what was known before
	if at < s.armed {
		s.wake(at)
	}
}

// wake arms the watchdog for an earlier time. The mutex must be held.
func (s *schedule) wake(at time.Duration) {
	s.armed = at
	wakeUp(s.kick)
}

// remove takes c off.
func (s *schedule) remove(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.index >= 0 {
		s.drop(int(c.index))
	}
}

// drop takes off what is at index i; the last visit of the heap stands in for it. The mutex must
// be held.
func (s *schedule) drop(i int) {
	c, end := s.due[i].c, len(s.due)-1
	last := s.due[end]
	s.due[end] = visit{}
	s.due = s.due[:end]
	if i < end {
		s.put(last, i)
	}
	c.index = -1
}

// take takes off and returns what is due.
func (s *schedule) take(now time.Duration) (due []*claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.due) > 0 && s.due[0].at <= now {
		due = append(due, s.due[0].c)
		s.drop(0)
	}
	return due
}

// arm returns when the watchdog must wake up, at the latest at a given time. A time for which it
// was armed before, and that is not over, stays: else each Lock of a session that holds nothing
// else would wake it.
func (s *schedule) arm(now, latest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed <= now {
		s.armed = never
	}
	s.armed, s.asked = min(s.armed, latest, s.asked), never
	if len(s.due) > 0 {
		s.armed = min(s.armed, s.due[0].at)
	}
	return s.armed
}

// size returns how many claims are scheduled.
func (s *schedule) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due)
}
