package engine

import (
	"context"
	"time"

	"relock/internal/backoff"
	"relock/internal/script"
	"relock/internal/waiting"
)

// lookBatch is how many entries one script call asks about.
const lookBatch = 50

// nextLookOfRuns notes an answer about the lock's entries, and so when to ask again at the latest. ms
// is after how many milliseconds it is worth while, -1 if that is not known; clock is Redis's, 0 if
// the answer has none.
func (l *lock) nextLookOfRuns(asked time.Duration, ms, clock int64, doubts uint32) {
	s := l.s
	l.needLobby().place.Clock.Read(asked, clock, doubts)
	at := asked + s.cfg.HeartbeatEvery()
	if ms >= 0 {
		at = min(at, asked+time.Duration(ms+1)*time.Millisecond)
	}
	s.looks.Set(l, max(at, s.now()+backoff.Least))
	s.schedule.WakeAt(at)
}

// heartbeat lets Redis hear of the session's entries of some locks.
func (s *Session) heartbeat(due []*lock) {
	var beats []waiting.Heartbeat[claim, acquisition]
	var cmds []script.Command
	for _, l := range due {
		l.mu.Lock()
		for _, b := range l.line.Heartbeats(lookBatch) {
			beats = append(beats, b)
			cmds = append(cmds, b.Of().prim.(Liner).Look(b.Entries()))
		}
		l.unlockBehind()
	}
	if len(cmds) == 0 {
		return
	}
	asked, doubts := s.now(), s.redis.Conn.Doubts.Load()
	ctx, cancel := context.WithTimeout(s.life.Context, max(s.cfg.HeartbeatEvery(), 10*time.Millisecond))
	defer cancel()
	for i, r := range s.redis.Run.Multi(ctx, cmds) {
		reply, err := r.AsIntSlice()
		l := beats[i].Of().lock
		l.mu.Lock()
		if err != nil && script.Classify(err) != script.Refused {
			at := s.now() + backoff.Jitter(max(s.cfg.HeartbeatEvery()/4, 10*time.Millisecond))
			s.looks.Set(l, at)
			s.schedule.WakeAt(at)
		} else {
			soonest, clock := beats[i].Answered(reply)
			l.nextLookOfRuns(asked, soonest, clock, doubts)
			l.callRuns()
		}
		l.unlockBehind()
	}
}
