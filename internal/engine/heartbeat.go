package engine

import (
	"context"
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

// nextHeartbeat notes an answer about the lock's entries, and so when to ask again at the latest. ms
// is after how many milliseconds it is worth while, -1 if that is not known; clock is Redis's, 0 if
// the answer has none.
func (l *lock) nextHeartbeat(asked time.Duration, ms, clock int64) {
	s := l.s
	l.line.Clock.Read(asked, clock)
	at := asked + s.heartbeatEvery()
	if ms >= 0 {
		at = min(at, asked+time.Duration(ms+1)*time.Millisecond)
	}
	s.fair.due.Set(l, max(at, s.now()+backoff.Least))
	s.schedule.WakeAt(at)
}

// heartbeat lets Redis hear of the session's entries of some locks.
func (s *Session) heartbeat(due []*lock) {
	var beats []fairqueue.Heartbeat[claim, acquisition]
	var cmds []script.Command
	for _, l := range due {
		l.mu.Lock()
		for _, b := range l.line.Heartbeats(heartbeatBatch) {
			beats = append(beats, b)
			cmds = append(cmds, b.Of().queuer().Heartbeat(b.Entries()))
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
		l := beats[i].Of().lock
		l.mu.Lock()
		if err != nil && script.Classify(err) != script.Refused {
			at := s.now() + backoff.Jitter(max(s.heartbeatEvery()/4, 10*time.Millisecond))
			s.fair.due.Set(l, at)
			s.schedule.WakeAt(at)
		} else {
			l.nextHeartbeat(asked, beats[i].Answered(asked, reply), 0)
			l.press()
		}
		l.unlockBehind()
	}
}
