package engine

import (
	"context"
	"time"

	"relock/internal/clock"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
)

// heartbeatBatch is how many entries one script call asks about.
const heartbeatBatch = 50

// nextHeartbeat returns when to send the next heartbeat for an entry of a fair lock. The last one was sent at asked, and
// Redis has answered that the next one is worth while in ms milliseconds, -1 if unknown.
func (s *Session) nextHeartbeat(asked time.Duration, ms int64) time.Duration {
	at := asked + s.cfg.HeartbeatEvery()
	if ms >= 0 {
		at = min(at, asked+time.Duration(ms+1)*time.Millisecond)
	}
	return max(at, s.now()+clock.Least)
}

// heartbeatLater has the watchdog send heartbeats for a fair lock's entries at a time, or earlier.
func (l *lock) heartbeatLater(at time.Duration) {
	if at != never {
		l.s.heartbeats.Set(l, at)
		l.s.schedule.WakeAt(at)
	}
}

// heartbeat sends signs of life for the session's entries of some locks.
func (s *Session) heartbeat(due []*lock) {
	var beats []waiting.Heartbeat[claim, acquisition]
	var cmds []script.Command
	asked, doubts := s.now(), s.redis.Conn.Doubts.Load()
	for _, l := range due {
		l.mu.Lock()
		now := l.runs.Heartbeats(asked+s.cfg.HeartbeatEvery()/2, heartbeatBatch)
		for _, b := range now {
			beats = append(beats, b)
			entries := make([]string, len(b))
			for i, r := range b {
				entries[i] = r.Entry
			}
			cmds = append(cmds, b[0].Of.prim.(kind.FairLiner).Look(entries))
		}
		if now == nil {
			l.heartbeatLater(l.runs.NextHeartbeat())
		}
		l.unlockInBackground()
	}
	if len(cmds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.life.Context, max(s.cfg.HeartbeatEvery(), 10*time.Millisecond))
	defer cancel()
	for i, r := range s.redis.Run.Multi(ctx, cmds) {
		reply, err := r.AsIntSlice()
		l := beats[i][0].Of.lock
		l.mu.Lock()
		if err != nil && script.Classify(err) != script.Refused {
			l.heartbeatLater(s.now() + clock.Jitter(max(s.cfg.HeartbeatEvery()/4, 10*time.Millisecond)))
		} else {
			clock := beats[i].Answered(reply, func(ms int64) time.Duration { return s.nextHeartbeat(asked, ms) })
			l.needContention().place.Clock.Read(asked, s.now(), clock, doubts)
			l.heartbeatLater(l.runs.NextHeartbeat())
			l.wakeDueRun()
		}
		l.unlockInBackground()
	}
}
