package report

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Renewals sees whether the locks of one session are renewed; L is what the session has of a lock. A
// lock is tried again many times before it is lost, each by itself, so no single failure is told. Its
// mutex is the last in order, as that of a [Watch].
type Renewals[L comparable] struct {
	On atomic.Bool // some fail. The Renewals set it; while it is false no lock is counted

	teller

	mu      sync.Mutex  // guards what follows, and changes of On
	failing map[L]uint8 // a bit for each side whose last renewal has failed, and is tried again
	lost    int         // locks that were lost since some began to fail
	told    bool        // the Logger knows that some fail
	began   time.Duration
	tell    limit
}

// NewRenewals returns the Renewals of a session. log is as for [NewWatch].
func NewRenewals[L comparable](clock func() time.Duration, log *slog.Logger) *Renewals[L] {
	return &Renewals[L]{teller: teller{clock: clock, log: log}, failing: map[L]uint8{}}
}

// Failed counts a lock, the renewal of one side of which has failed.
func (r *Renewals[L]) Failed(lock L, side int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failing) == 0 {
		r.began, r.lost = r.clock(), 0
		r.On.Store(true)
	}
	r.failing[lock] |= 1 << side
}

// Tell has the Logger hear of the locks that are counted, if it has not for a while; err is what the
// last of them has failed with.
func (r *Renewals[L]) Tell(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	if len(r.failing) == 0 || !r.tell.passes(now) {
		return
	}
	if r.told {
		r.log.Warn("relock: renewals still fail", "locks", len(r.failing), "after", now-r.began, "error", err)
		return
	}
	r.told = true
	r.log.Warn("relock: renewals fail, and are tried again", "locks", len(r.failing), "error", err)
}

// Answered notes that Redis has renewed one side of a lock.
func (r *Renewals[L]) Answered(lock L, side int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sides, counted := r.failing[lock]
	if sides &^= 1 << side; sides != 0 {
		r.failing[lock] = sides
	} else if counted {
		r.over(lock)
	}
}

// Over takes a lock off the count: it is not to be renewed any more, or it is lost.
func (r *Renewals[L]) Over(lock L, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, counted := r.failing[lock]; !counted {
		return
	}
	if lost {
		r.lost++
	}
	r.over(lock)
}

// over takes a lock off the count. The mutex must be held.
func (r *Renewals[L]) over(lock L) {
	if delete(r.failing, lock); len(r.failing) > 0 {
		return
	}
	r.On.Store(false)
	if !r.told {
		return
	}
	r.told = false
	r.log.Info("relock: no renewal fails any more", "after", r.clock()-r.began, "lost", r.lost)
}
