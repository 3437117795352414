package clock

import (
	"context"
	"math"
	"sync"
	"time"
)

// Never is a time that does not come.
const Never = time.Duration(math.MaxInt64)

// A Schedule has each item at most once. Times are those of the clock that Run is given. All
// methods may be called by several goroutines; they wait for nothing but each other, Run
// excepted.
type Schedule[T any] struct {
	slot func(of T) *Slot // of an item

	mu    sync.Mutex
	due   []entry[T]    // a binary heap: the next one is in front
	armed time.Duration // when Run wakes up; Never is what it begins with
	asked time.Duration // when else it must, by what was asked since it was armed last
	timer *time.Timer   // wakes Run, once that has begun
	clock func() time.Duration
}

// A Slot is where an item stands in its Schedule, whose mutex guards it. Each item has one,
// always the same. The zero value is that of an item that is not on the schedule.
type Slot struct{ place int32 } // the index in the heap, and 1

type entry[T any] struct {
	at time.Duration
	of T
}

// NewSchedule returns an empty Schedule of items that have a Slot each.
func NewSchedule[T any](slot func(of T) *Slot) *Schedule[T] {
	return &Schedule[T]{slot: slot, armed: Never, asked: Never}
}

// Run calls visit at once, when an item is due, and at the time that visit has returned last or
// WakeAt was told, until ctx ends. It runs with no mutex held. There must be one Run at a time.
func (s *Schedule[T]) Run(ctx context.Context, clock func() time.Duration, visit func(now time.Duration) (next time.Duration)) {
	timer := time.NewTimer(Never)
	defer timer.Stop()
	s.mu.Lock()
	s.timer, s.clock = timer, clock
	s.mu.Unlock()
	for {
		now := clock()
		s.arm(now, visit(now))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// Due returns the item that is due for longest, if one is. It stays on the schedule, and is returned
// again, until it is set anew.
func (s *Schedule[T]) Due(now time.Duration) (of T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 || s.due[0].at > now {
		return of, false
	}
	return s.due[0].of, true
}

// Set has an item visited at a time, whenever it was due before; Never takes it off. The entry is laid
// where the item stood, or at the end of the heap, and moves from there: in front of later entries,
// behind earlier ones. For an item that is taken off, the last entry of the heap is laid there.
func (s *Schedule[T]) Set(of T, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, i, end := entry[T]{at, of}, int(s.slot(of).place)-1, len(s.due)-1
	switch {
	case i < 0 && at == Never:
		return
	case i < 0:
		s.due = append(s.due, e)
		i = end + 1
	case at == Never:
		s.slot(of).place = 0
		e, s.due[end] = s.due[end], entry[T]{}
		s.due = s.due[:end]
		if i == end {
			return
		}
	}
	d := s.due
	for up := (i - 1) / 2; i > 0 && e.at < d[up].at; up = (i - 1) / 2 {
		d[i] = d[up]
		s.slot(d[i].of).place = int32(i) + 1
		i = up
	}
	for {
		down := 2*i + 1
		if down+1 < len(d) && d[down+1].at < d[down].at {
			down++
		}
		if down >= len(d) || e.at <= d[down].at {
			break
		}
		d[i] = d[down]
		s.slot(d[i].of).place = int32(i) + 1
		i = down
	}
	d[i] = e
	s.slot(e.of).place = int32(i) + 1
	if at < s.armed {
		s.wake(at)
	}
}

// WakeAt has visit called at a time, whatever is due then.
func (s *Schedule[T]) WakeAt(at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = min(s.asked, at) // Run may be about to be armed for what was known before
	if at < s.armed {
		s.wake(at)
	}
}

// Len returns how many items are on the schedule.
func (s *Schedule[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due)
}

// wake arms Run for a time. The mutex must be held.
func (s *Schedule[T]) wake(at time.Duration) {
	if s.armed = at; s.timer != nil { // else Run will visit at once, and arm itself
		s.timer.Reset(at - s.clock())
	}
}

// arm has Run wake up at a given time at the latest. A time for which it was armed
// before, and that is not over, stays: else each item that is set and removed again, on a
// schedule that has nothing else, would wake it.
func (s *Schedule[T]) arm(now, latest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed <= now {
		s.armed = Never
	}
	at := min(s.armed, latest, s.asked)
	s.asked = Never
	if len(s.due) > 0 {
		at = min(at, s.due[0].at)
	}
	s.wake(at)
}
