package engine

import (
	"sync"
	"time"
)

// The schedule says when the watchdog must look at which claim. Its mutex comes after those of
// the locks; the watchdog takes what is due off it, drops the mutex, and then visits the locks.
type schedule struct {
	mu    sync.Mutex
	due   []*claim      // a binary heap: the next one is in front
	armed time.Duration // when the watchdog wakes up; never is what it begins with
	asked time.Duration // when else it must, by what was asked since it was armed last
	kick  chan struct{} // capacity 1: wakes the watchdog
}

// set has c looked at when it is due.
func (s *schedule) set(c *claim, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := int(c.index)
	if i < 0 {
		i = len(s.due)
		s.due = append(s.due, c)
	}
	c.due = at
	s.put(c, i)
	if at < s.armed {
		s.wake(at)
	}
}

// put lets c stand at index i of the heap, or where it belongs from there: nearer to the front
// than claims that are due later, behind those that are due earlier. The mutex must be held.
func (s *schedule) put(c *claim, i int) {
	d := s.due
	for parent := (i - 1) / 2; i > 0 && c.due < d[parent].due; parent = (i - 1) / 2 {
		d[i], d[parent].index = d[parent], int32(i)
		i = parent
	}
	for {
		child := 2*i + 1
		if child+1 < len(d) && d[child+1].due < d[child].due {
			child++
		}
		if child >= len(d) || c.due <= d[child].due {
			break
		}
		d[i], d[child].index = d[child], int32(i)
		i = child
	}
	d[i], c.index = c, int32(i)
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
	s.drop(c)
}

// drop takes c off; the last claim of the heap stands in for it. The mutex must be held.
func (s *schedule) drop(c *claim) {
	if c.index < 0 {
		return
	}
	end := len(s.due) - 1
	last := s.due[end]
	s.due[end] = nil
	s.due = s.due[:end]
	if last != c {
		s.put(last, int(c.index))
	}
	c.index = -1
}

// take takes off and returns what is due.
func (s *schedule) take(now time.Duration) (due []*claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.due) > 0 && s.due[0].due <= now {
		c := s.due[0]
		s.drop(c)
		due = append(due, c)
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
		s.armed = min(s.armed, s.due[0].due)
	}
	return s.armed
}

// size returns how many claims are scheduled.
func (s *schedule) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due)
}
