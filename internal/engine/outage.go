package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// An outage is a time in which Redis does not serve Locks that wait. The Logger hears when it
// begins and when it ends, however many Locks wait and however often they ask.
type outage struct {
	on    atomic.Bool // the Logger was told that it began
	mu    sync.Mutex  // the last in order; it guards what follows, and changes of on
	stuck int         // Locks that wait and whose last attempt has failed
	began time.Duration
}

// enterOutage counts a Lock that waits and whose last attempt has failed with err, if that says
// that Redis does not serve.
func (a *acquisition) enterOutage(err error) {
	s := a.lock.s
	if a.tries.stuck || !errors.Is(err, ErrUnavailable) || s.life.Closing.Err() != nil {
		return
	}
	a.tries.stuck = true
	o := &s.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stuck++; o.on.Load() {
		return
	}
	o.began = s.now()
	o.on.Store(true)
	name := a.prim.Names().Name()
	s.notify(func() {
		s.cfg.Logger.Warn("relock: Redis cannot serve; locks wait for it", "name", name, "error", err)
	})
}

// leaveOutage takes a Lock off the count: it was answered, or gives up.
func (a *acquisition) leaveOutage() {
	if !a.tries.stuck {
		return
	}
	a.tries.stuck = false
	o := &a.lock.s.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stuck--
}

// endOutage notes that Redis has answered. As long as it does not answer others, as where a
// part of a Cluster is down, the outage goes on.
func (s *Session) endOutage() {
	o := &s.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stuck > 0 || !o.on.Load() {
		return
	}
	o.on.Store(false)
	lasted := s.now() - o.began
	s.notify(func() {
		s.cfg.Logger.Info("relock: Redis serves again", "after", lasted)
	})
}
