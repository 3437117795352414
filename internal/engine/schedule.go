package engine

import (
	"container/heap"
	"sync"
	"time"
)

// The schedule says when the watchdog must look at which claim. Its mutex comes after those of
// the locks; the watchdog takes what is due off it, drops the mutex, and then visits the locks.
type schedule struct {
	mu    sync.Mutex
	due   dueClaims
	armed time.Duration // when the watchdog wakes up; never is what it begins with
	asked time.Duration // when else it must, by what was asked since it was armed last
	kick  chan struct{} // capacity 1: wakes the watchdog
}

// dueClaims is a heap.
type dueClaims []*claim

func (d dueClaims) Len() int           { return len(d) }
func (d dueClaims) Less(i, j int) bool { return d[i].due < d[j].due }
func (d dueClaims) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = int32(i), int32(j)
}
func (d *dueClaims) Push(x any) {
	c := x.(*claim)
	c.index = int32(len(*d))
	*d = append(*d, c)
}
func (d *dueClaims) Pop() any {
	last := len(*d) - 1
	c := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	c.index = -1
	return c
}

// set has c looked at when it is due.
func (s *schedule) set(c *claim, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.due = at
	if c.index < 0 {
		heap.Push(&s.due, c)
	} else {
		heap.Fix(&s.due, int(c.index))
	}
	s.wake(at)
}

// wakeAt has the watchdog look around at a time.
func (s *schedule) wakeAt(at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = min(s.asked, at) // it may be about to be armed for what was known before
	s.wake(at)
}

// wake arms the watchdog: a later time finds it awake anyway. The mutex must be held.
func (s *schedule) wake(at time.Duration) {
	if at < s.armed {
		s.armed = at
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

// remove takes c off.
func (s *schedule) remove(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.index >= 0 {
		heap.Remove(&s.due, int(c.index))
	}
}

// take takes off and returns what is due.
func (s *schedule) take(now time.Duration) (due []*claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.due) > 0 && s.due[0].due <= now {
		due = append(due, heap.Pop(&s.due).(*claim))
	}
	return due
}

// arm returns when the watchdog must wake up, at the latest at a given time.
func (s *schedule) arm(latest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.asked = min(latest, s.asked), never
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
