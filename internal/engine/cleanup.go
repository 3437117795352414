package engine

import (
	"context"
	"sync"
	"time"

	"relock/internal/script"
)

// The cleanup ends in the background what no caller waits for: claims whose attempt was
// abandoned or whose release was not confirmed, and surplus holds. A command is sent until
// Redis answers, or until the lease that it speaks of is over by itself.
//
// On one connection a release runs behind what it releases. With a direct connection beside it,
// it waits for that (see script.Direct). After a reconnection it runs behind too:
// the server reads what was left in the old connection no later than the greeting of the new
// one. Only a proxy or a healing network can deliver the older command later; then the lock
// ends one lease later, by itself.
type cleanup struct {
	mu          sync.Mutex
	queue       []cleaning
	running     bool          // a goroutine works the queue off
	stopped     bool          // Close waits no longer
	unconfirmed int           // commands that were given up
	idle        chan struct{} // made by idled, closed when nothing is left
}

// A cleaning is what ends one claim, or some of its holds.
type cleaning struct {
	cmds  []releaseCommand
	name  string
	until time.Duration
	done  chan struct{} // closed when all are confirmed or given up; may be nil
	ended *claim        // that they end; nil if a part of it stays
	// confirmed is called, without a mutex, when Redis has answered all; may be nil.
	confirmed func()
}

// end ends a claim in the background.
func (c *claim) end(until time.Duration, done chan struct{}) {
	cmds := c.releases(nil)
	c.retire(over)
	c.lock.s.clean(cleaning{cmds: cmds, name: c.prim.Names().Name(), until: until, done: done, ended: c})
}

// trim ends in the background what Redis may count beyond the holds that the claim's section
// has.
func (c *claim) trim() {
	x := c.sections
	if c.more == nil || x == nil {
		return
	}
	for side := range c.more.ids {
		if ends := c.surplus(side, x); len(ends) > 0 {
			c.bound = true
			c.tidy(side, ends, c.partial(side, ends, 0))
		}
	}
	c.vacate()
}

// tidy has a partial release done in the background.
func (c *claim) tidy(side int, ends []string, cmd script.Command) {
	l := c.lock
	l.s.clean(cleaning{
		cmds: []releaseCommand{{Command: cmd}}, name: c.prim.Names().Name(), until: c.overAt(l.s.now()),
		confirmed: func() {
			l.mu.Lock()
			c.ended(side, ends)
			l.unlock()
		},
	})
}

// clean has a cleaning done.
func (s *Session) clean(cl cleaning) {
	q := &s.cleanup
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.stopped:
		q.unconfirmed++
		fallthrough
	case len(cl.cmds) == 0:
		if cl.done != nil {
			close(cl.done)
		}
		return
	}
	q.queue = append(q.queue, cl)
	if !q.running {
		q.running = true
		s.life.background.Go(s.cleanAll)
	}
}

// cleanBatch bounds one pipeline of releases.
const cleanBatch = 256

// cleanAll works the queue off, and ends when it is empty. There is at most one for a session.
func (s *Session) cleanAll() {
	q := &s.cleanup
	for failures := 0; ; {
		q.mu.Lock()
		n := min(len(q.queue), cleanBatch)
		if n == 0 {
			q.queue, q.running = nil, false
			q.signalIdle()
			q.mu.Unlock()
			return
		}
		batch := append([]cleaning(nil), q.queue[:n]...)
		q.queue = q.queue[n:]
		q.mu.Unlock()

		again, atOnce := s.cleanOnce(batch)
		if len(again) == 0 {
			failures = 0
			continue
		}
		q.mu.Lock()
		q.queue = append(q.queue, again...)
		q.mu.Unlock()
		failures++
		if atOnce && failures == 1 {
			continue
		}
		if pause(s.life.ctx, failures) != nil {
			failures = 0 // the session ends, and so do the tries
		}
	}
}

// cleanOnce sends a batch and returns what has to be sent again; atOnce, if it failed with
// another caller's context. rueidis connects with that of the first caller, and when that one
// gives up, all that wait for the connection fail.
func (s *Session) cleanOnce(batch []cleaning) (again []cleaning, atOnce bool) {
	var cmds []script.Command
	for _, cl := range batch {
		for _, cmd := range cl.cmds {
			cmds = append(cmds, cmd.Command)
		}
	}
	ctx, cancel := context.WithTimeout(s.life.ctx, s.cfg.ReleaseTimeout)
	defer cancel()
	results := s.run.Multi(ctx, cmds)
	now := s.now()
	for _, cl := range batch {
		var left []releaseCommand
		var last error
		for i, cmd := range cl.cmds {
			err := results[i].Error()
			if err == nil {
				continue
			}
			last = err
			if script.Unavailable(err) && now < cl.until && s.life.ctx.Err() == nil {
				atOnce = atOnce || script.IsContext(err) && ctx.Err() == nil
				left = append(left, cmd)
			}
		}
		results = results[len(cl.cmds):]
		if left != nil {
			cl.cmds = left
			again = append(again, cl)
			continue
		}
		s.cleaned(cl, last)
	}
	return again, atOnce
}

// cleaned notes that a cleaning is over, with the last error if it was given up.
func (s *Session) cleaned(cl cleaning, err error) {
	switch {
	case err != nil:
		s.cleanup.mu.Lock()
		s.cleanup.unconfirmed++
		s.cleanup.mu.Unlock()
		s.notify(func() {
			s.cfg.Logger.Warn("relock: a release was never confirmed; the lock ends with its lease", "name", cl.name, "error", err)
		})
	case cl.confirmed != nil:
		cl.confirmed()
	}
	if cl.ended != nil {
		cl.ended.forget()
	}
	if cl.done != nil {
		close(cl.done)
	}
}

// signalIdle wakes Close if nothing is left. The mutex must be held.
func (q *cleanup) signalIdle() {
	if !q.running && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// idled returns a channel that is closed when nothing is left to be done.
func (q *cleanup) idled() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.signalIdle()
	return idle
}
