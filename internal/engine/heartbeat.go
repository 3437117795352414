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

// nextHeartbeat returns when to send the next heartbeat for an entry of a fair lock, at most so long after the last
// one, or the attempt, that was sent at asked. Redis has answered that it is worth while in ms milliseconds, -1 if
// unknown. Where a message may have been lost since then, it is sent at once. Times are rounded to a common grid, so that
// locks that came one by one have their heartbeats together.
func (s *Session) nextHeartbeat(asked, every time.Duration, ms int64, doubt bool) time.Duration {
	at := asked + every
	at -= at % (every / 4)
	switch {
	case doubt:
		at = asked
	case ms >= 0:
		at = min(at, asked+time.Duration(ms+1)*time.Millisecond)
	}
	return max(at, s.now()+clock.Least)
}

// heartbeat sends signs of life for entries of the session.
func (s *Session) heartbeat(beats []waiting.Heartbeat[claim, acquisition]) {
	if s.unheard.Load() != 0 && s.deaf() {
		s.sayDeaf(beats)
	}
	asked, doubts := s.now(), s.redis.Conn.Doubts.Load()
	cmds := make([]script.Command, len(beats))
	for i, b := range beats {
		entries := make([]string, len(b))
		for i, r := range b {
			entries[i] = r.Entry
		}
		cmds[i] = b[0].Of.prim.(kind.FairLiner).Look(entries)
	}
	ctx, cancel := context.WithTimeout(s.life.Context, max(s.cfg.HeartbeatEvery(), 10*time.Millisecond))
	defer cancel()
	for i, r := range s.redis.Run.Multi(ctx, cmds) {
		reply, err := r.AsIntSlice()
		beat, l := beats[i], beats[i][0].Of.lock
		l.mu.Lock()
		if err != nil && script.Classify(err) != script.Refused {
			again := s.now() + clock.Jitter(max(s.cfg.HeartbeatEvery()/4, 10*time.Millisecond))
			for _, r := range beat {
				r.HeartbeatAt = again
			}
		} else {
			clock := beat.Answered(reply, func(ms int64) time.Duration {
				return s.nextHeartbeat(asked, s.cfg.HeartbeatEvery(), ms, doubts != s.redis.Conn.Doubts.Load())
			})
			l.needContention().place.Clock.Read(asked, s.now(), clock, doubts)
			l.wakeDueRun()
		}
		for _, r := range beat {
			r.Of.reschedule()
		}
		l.unlockInBackground()
	}
	if s.cfg.Polling != nil {
		s.beatSooner(beats, asked)
	}
}

// sayDeaf has the runs of a session that hears nothing enter the line again at their places, and say so: nobody is given
// the lock, or called, whom nobody listens for.
func (s *Session) sayDeaf(beats []waiting.Heartbeat[claim, acquisition]) {
	for _, beat := range beats {
		l := beat[0].Of.lock
		l.mu.Lock()
		for _, r := range beat {
			if c := r.Of; c.state == asking && c.awaits == nothing && !waiting.SaysDeaf(r.Entry) {
				c.end(nil)
			}
		}
		l.unlockInBackground()
	}
}

// beatSooner has the next heartbeats sent when the Backoff of a session that polls says so: by them it learns that it has
// the lock. The Backoff is code of the caller's, which may not return: they are scheduled already.
func (s *Session) beatSooner(beats []waiting.Heartbeat[claim, acquisition], asked time.Duration) {
	for _, beat := range beats {
		l := beat[0].Of.lock
		l.mu.Lock()
		n := beat[0].Heartbeats
		l.unlockInBackground()
		sleep, ok := s.cfg.Polling.Next(n + 1)
		if !ok {
			continue
		}
		l.mu.Lock()
		for _, r := range beat {
			r.HeartbeatAt = min(r.HeartbeatAt, s.nextHeartbeat(asked, sleep, -1, false))
			r.Of.reschedule()
		}
		l.unlockInBackground()
	}
}
