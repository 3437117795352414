package waiting

import (
	"sync"
	"time"

	"relock/internal/clock"
)

// A HeartbeatSchedule says when the session must send a heartbeat for the entries of which lock. The zero
// value is empty. It is safe for concurrent use: all locks of a session share one.
type HeartbeatSchedule[L comparable] struct {
	mu    sync.Mutex
	at    map[L]time.Duration
	first time.Duration // not later than the earliest of them
}

// Set schedules a heartbeat for a lock's entries at a time, unless an earlier one is scheduled.
func (d *HeartbeatSchedule[L]) Set(l L, at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at == nil {
		d.at = map[L]time.Duration{}
	}
	if len(d.at) == 0 || at < d.first {
		d.first = at
	}
	if was, ok := d.at[l]; !ok || at < was {
		d.at[l] = at
	}
}

// SetAll moves the heartbeats of all locks to a time.
func (d *HeartbeatSchedule[L]) SetAll(at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.at {
		d.at[l], d.first = at, at
	}
}

// Take removes the locks that are due, and returns when the next ones are. It takes all that are due
// soon after the first as well, so that locks that came one by one have their heartbeats together from then on.
func (d *HeartbeatSchedule[L]) Take(now, soon time.Duration) (due []L, next time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now < d.first {
		return nil, d.first
	}
	d.first = clock.Never
	for l, at := range d.at {
		if at <= now+soon {
			delete(d.at, l)
			due = append(due, l)
		} else {
			d.first = min(d.first, at)
		}
	}
	return due, d.first
}
