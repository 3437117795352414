package engine

import (
	"context"
	"slices"
	"time"

	"relock/internal/backoff"
	"relock/internal/fairqueue"
	"relock/internal/script"
)

// heartbeatEvery is how often the session is heard of: every 5/24 of Config.QueueLease, or poll
// floor. A session that missed two heartbeats, 11/24, is passed over; an unconfirmed grant
// outlives one (QueueLease/4). So when everybody in front of a waiter has died, it is in after
// 22/24 of a QueueLease at the latest: two heartbeats until they count as silent, one grant
// that was given just before, and a heartbeat of its own. With the default of 5 s a session
// sends less than one command a second for each lock that it waits for.
func (s *Session) heartbeatEvery() time.Duration {
	return max(min(s.cfg.QueueLease/24*5, s.cfg.PollFloor), time.Millisecond)
}

// heartbeatBatch is how many entries one script call asks about.
const heartbeatBatch = 200

// heardOf notes an answer about the lock's entries: when to ask again at the latest, and Redis's
// clock, 0 if the answer has none or Line.Heard has taken it.
func (l *lock) heardOf(asked time.Duration, ms, clock int64) {
	s := l.s
	l.line.Clock.Read(asked, clock)
	at := asked + s.heartbeatEvery()
	if ms >= 0 {
		at = min(at, asked+time.Duration(ms+1)*time.Millisecond)
	}
	s.fair.due.Set(l, max(at, s.now()+backoff.Least))
	s.schedule.WakeAt(at)
}

// A beat is one script call for entries of one lock.
type beat struct {
	l    *lock
	runs []*fairqueue.Run[claim, acquisition]
}

// heartbeat lets Redis hear of the session's entries of some locks.
func (s *Session) heartbeat(due []*lock) {
	var beats []beat
	var cmds []script.Command
	for _, l := range due {
		l.mu.Lock()
		for runs := range slices.Chunk(l.line.Queued(), heartbeatBatch) {
			entries := make([]string, len(runs))
			for i, r := range runs {
				entries[i] = r.Entry
			}
			beats = append(beats, beat{l, runs})
			cmds = append(cmds, runs[0].Of.queuer().Heartbeat(entries))
		}
		l.unlockBehind()
	}
	if len(cmds) == 0 {
		return
	}
	asked := s.now()
	ctx, cancel := context.WithTimeout(s.life.Context, max(s.heartbeatEvery(), 10*time.Millisecond))
	defer cancel()
	for i, r := range s.redis.Run.Multi(ctx, cmds) {
		reply, err := r.AsIntSlice()
		if err == nil && len(reply) != len(beats[i].runs)+1 {
			err = script.ErrShape
		}
		s.heartbeatAnswered(beats[i], reply, err, asked)
	}
}

// heartbeatAnswered takes in the answer to a heartbeat.
func (s *Session) heartbeatAnswered(b beat, reply []int64, err error, asked time.Duration) {
	l := b.l
	l.mu.Lock()
	defer l.unlockBehind()
	if err != nil && script.Classify(err) != script.Refused {
		at := s.now() + backoff.Jitter(max(s.heartbeatEvery()/4, 10*time.Millisecond))
		s.fair.due.Set(l, at)
		s.schedule.WakeAt(at)
		return
	}
	if err != nil {
		reply = nil
	}
	l.heardOf(asked, l.line.Heard(b.runs, asked, reply), 0)
	l.press()
}
