package waiting

import (
	"sync"
	"time"

	"relock/internal/clock"
)

// Due says when Redis must hear of which locks' entries. The zero value is empty. It is safe for
// concurrent use: unlike runs, those of all locks of a session have one.
type Due[L comparable] struct {
	mu    sync.Mutex
	at    map[L]time.Duration
	first time.Duration // not later than the earliest of them
}

// Set has a lock's entries heard of at a time, or earlier if that was agreed before.
func (d *Due[L]) Set(l L, at time.Duration) {
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

// SetAll has the entries of all locks heard of at a time instead.
func (d *Due[L]) SetAll(at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.at {
		d.at[l], d.first = at, at
	}
}

// Take takes off the locks that are due, and returns when the next ones are. With the first of
// them go all that are due soon after, so that those that came one by one are heard of together
// from then on.
func (d *Due[L]) Take(now, soon time.Duration) (due []L, next time.Duration) {
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
