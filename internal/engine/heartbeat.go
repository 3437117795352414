package engine

import (
	"context"
	"time"

	"relock/internal/script"
)

// heartbeatEvery is how often the session is heard of: every 5/24 of Config.QueueLease, or poll
// floor. A waiter that missed two heartbeats, 11/24, is passed over; an unconfirmed grant
// outlives one (QueueLease/4). So when everybody in front of a waiter has died, it is in after
// 22/24 of a QueueLease at the latest: two heartbeats until they count as silent, one grant
// that was given just before, and a heartbeat of its own. With the default of 5 s a session
// sends less than one command a second for each lock that it waits for.
func (s *Session) heartbeatEvery() time.Duration {
	return max(min(s.cfg.QueueLease/24*5, s.cfg.PollFloor), time.Millisecond)
}

// heartbeatBatch is how many waiters one script call keeps.
const heartbeatBatch = 200

// heardOf notes an answer about a waiter: when to ask again at the latest, and Redis's clock.
func (s *Session) heardOf(w *fairWaiter, asked time.Duration, ms, clock int64) {
	at := asked + s.heartbeatEvery()
	if ms >= 0 {
		at = min(at, asked+time.Duration(ms+1)*time.Millisecond)
	}
	at = max(at, s.now()+minPause)
	s.fair.mu.Lock()
	w.asked, w.clock = asked, clock
	s.fair.mu.Unlock()
	s.heartbeatAt(w, at)
}

// heartbeatAt sets when w must be heard of.
func (s *Session) heartbeatAt(w *fairWaiter, at time.Duration) {
	f := &s.fair
	f.mu.Lock()
	w.due = at
	f.due = min(f.due, at)
	f.mu.Unlock()
	s.schedule.wakeAt(at)
}

// hurry has all waiters heard of at once: the session may have missed a message.
func (f *fairQueue) hurry(now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.waiters {
		w.due = now
		f.due = min(f.due, now)
	}
}

// takeDue returns the waiters that must be heard of, and when the next ones must.
func (f *fairQueue) takeDue(now, every time.Duration) (due []*fairWaiter, next time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now < f.due {
		return nil, f.due
	}
	// With the first of them go all who are due soon, so that those who came one by one are
	// heard of together from then on.
	soon := now + every/2
	f.due = never
	for _, w := range f.waiters {
		if w.due <= soon {
			w.due = never
			due = append(due, w)
		}
		f.due = min(f.due, w.due)
	}
	return due, f.due
}

// heartbeat lets Redis hear of waiters, many with one script call.
func (s *Session) heartbeat(due []*fairWaiter) {
	var batches [][]*fairWaiter
	open := map[string]int{} // by lock
	for _, w := range due {
		key := w.q.Names().Key()
		i, ok := open[key]
		if !ok || len(batches[i]) >= heartbeatBatch {
			i = len(batches)
			open[key] = i
			batches = append(batches, nil)
		}
		batches[i] = append(batches[i], w)
	}
	cmds := make([]script.Command, len(batches))
	for i, b := range batches {
		names := make([]string, len(b))
		for j, w := range b {
			names[j] = w.name
		}
		cmds[i] = b[0].q.Heartbeat(names)
	}
	asked := s.now()
	ctx, cancel := context.WithTimeout(s.life.ctx, max(s.heartbeatEvery(), 10*time.Millisecond))
	defer cancel()
	for i, r := range s.run.Multi(ctx, cmds) {
		reply, err := r.AsIntSlice()
		if err == nil && len(reply) != len(batches[i])+1 {
			err = script.ErrShape
		}
		for j, w := range batches[i] {
			s.heartbeatAnswered(w, j, reply, err, asked)
		}
	}
}

// heartbeatAnswered takes in the answer about the j-th waiter of a batch.
func (s *Session) heartbeatAnswered(w *fairWaiter, j int, reply []int64, err error, asked time.Duration) {
	f := &s.fair
	f.mu.Lock()
	gone := f.waiters[w.id] != w
	if ask := err != nil && script.Classify(err) == script.Refused || err == nil && reply[j] == 0; ask && !gone {
		w.look = true // the attempt will say why
		w.signal()
	}
	f.mu.Unlock()
	switch {
	case gone:
	case err == nil && reply[j] == 0: // it asks now, so the next heartbeat is not urgent
		s.heardOf(w, asked, -1, reply[len(reply)-1])
	case err == nil:
		s.heardOf(w, asked, reply[j], reply[len(reply)-1])
	case script.Classify(err) != script.Refused:
		s.heartbeatAt(w, s.now()+jitter(max(s.heartbeatEvery()/4, 10*time.Millisecond)))
	}
}
